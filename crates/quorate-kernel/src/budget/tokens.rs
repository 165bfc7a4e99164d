//! How many tokens a text can have, in any tokenizer of the models that are asked. A budget is held by the most, and a
//! server that cut a prompt is found by the fewest.

/// The most. Letters, blanks and control characters of ASCII make up words, of which a token has two bytes or more; each digit
/// and each sign may be a token of its own, and so may each byte of any other character.
pub fn most_tokens(text: &str) -> u64 {
    let (mut words, mut single) = (0_u64, 0_u64);
    for byte in text.bytes() {
        match byte.is_ascii_alphabetic() || byte.is_ascii_whitespace() {
            true => words += 1,
            false => single += 1,
        }
    }
    single + words.div_ceil(2)
}

/// How many letters of a script without blanks one token has at most.
const LETTERS_PER_TOKEN: usize = 8;

/// The fewest: tokens do not reach from one word to the next, so each word has one or more. Runs of one letter and of signs do not
/// count, since some tokenizers have a token for a whole line of them.
pub fn fewest_tokens(text: &str) -> u64 {
    text.split_whitespace().map(|word| fewest_of_word(word) as u64).sum()
}

/// Whether a text has more than so many tokens in any tokenizer: [`fewest_tokens`] is more. Most texts that have not are known
/// by their blanks alone.
pub fn has_more_tokens(text: &str, than: u64) -> bool {
    // A word is followed by a blank, or is the last; a character that is not of ASCII may be a blank, or a word's letter.
    let may_end = |byte: &u8| u8::from(byte.is_ascii_whitespace() || *byte == 0xb || !byte.is_ascii());
    // In parts whose sums fit into a byte, so that many are compared at once.
    let parts = text.as_bytes().chunks(usize::from(u8::MAX));
    let ends = 1 + parts.map(|part| u64::from(part.iter().map(may_end).sum::<u8>())).sum::<u64>();
    ends > than && fewest_tokens(text) > than
}

fn fewest_of_word(word: &str) -> usize {
    let (mut wide, mut has_letter, mut last) = (0, false, None);
    for letter in word.chars().filter(|letter| letter.is_alphabetic()) {
        has_letter = true;
        // Chinese, Japanese and Korean write no blanks.
        if letter >= '\u{2e80}' && last != Some(letter) {
            wide += 1;
        }
        last = Some(letter);
    }
    usize::from(has_letter).max(wide / LETTERS_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_at_least_the_fewest_and_at_most_the_most() {
        // The number of tokens in cl100k and o200k, the smaller and the larger.
        for (text, fewest, most) in [
            ("", 0, 0),
            ("The meeting moved to Tuesday at ten.", 8, 8),
            ("a b c d", 4, 4),
            ("1234567890", 4, 4),
            ("{\"would_block\": false}", 7, 7),
            ("会议改到星期二上午十点。", 7, 15),
            (&"=".repeat(64), 1, 1),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 4, 4),
        ] {
            assert!(fewest_tokens(text) <= fewest && most <= most_tokens(text), "{text}");
        }
        for text in
            ["", "a", " ", "a\u{b}b\u{a0}c\u{2003}d e", "会议改到星期二上午十点。会议改到。", "1 a\n\nb"]
        {
            let fewest = fewest_tokens(text);
            assert!(!has_more_tokens(text, fewest), "{text}");
            assert!(fewest == 0 || has_more_tokens(text, fewest - 1), "{text}");
        }
        // Scripts that a tokenizer does not know are read by the byte.
        assert_eq!(most_tokens("\u{12000}\u{12001}"), 8);
    }

    #[test]
    fn what_has_no_words_counts_as_little() {
        let rule = format!("{}\n", "-".repeat(200)).repeat(100);
        assert_eq!((fewest_tokens(&rule), fewest_tokens(&"w".repeat(50_000))), (0, 1));
        assert_eq!(fewest_tokens(&"哈".repeat(50_000)), 1);
        assert_eq!(fewest_tokens(&"word ".repeat(4_000)), 4_000);
        assert_eq!(fewest_tokens("会议改到星期二上午十点"), 1);
    }
}
