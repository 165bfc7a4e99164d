#![no_main]

use quorate_adapters::executor::llm::wire::{Event, Stream, Wire};

/// The events of a response that arrives in such pieces.
fn events<'b>(wire: Wire, pieces: impl Iterator<Item = &'b [u8]>) -> Vec<Event> {
    let mut stream = Stream::new(wire);
    let mut events: Vec<Event> = pieces.flat_map(|piece| stream.feed(piece)).collect();
    events.extend(stream.finish());
    events
}

// The first byte chooses the wire, the second the size of the pieces; the rest is the response: events, lines of JSON, a
// document or a list.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [wire, size, body @ ..] = bytes else { return };
    let wire = Wire::ALL[usize::from(*wire) % Wire::ALL.len()];
    let whole = events(wire, std::iter::once(body));
    assert_eq!(events(wire, body.chunks(usize::from(*size) + 1)), whole);
    let said: String =
        whole.iter().filter_map(|event| if let Event::Text(text) = event { Some(&**text) } else { None }).collect();
    if let Some(Event::Ended(response)) = whole.last()
        && let Ok(text) = &response.text
    {
        assert_eq!(*text, said, "the deltas are the answer");
    }
    let ends = whole.iter().filter(|event| matches!(event, Event::Ended(_))).count();
    assert!(ends == 1 && matches!(whole.last(), Some(Event::Ended(_))));
});
