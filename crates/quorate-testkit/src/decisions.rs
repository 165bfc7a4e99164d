//! A fake of decision models: a server on loopback that answers both wire formats, System One and OpenAI's Decisions, with
//! probabilities that a test chooses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use quorate_protocol::Json;
use serde_json::{Map, json};

/// A question to a decision model.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The question.
    pub instructions: String,
    /// The material, as text.
    pub state: String,
    /// The options of a choice; none for a yes-or-no question.
    pub options: Vec<String>,
}

/// The reply to a request of either wire format. `weigh` gives the probability of `yes`, and the weight of each option of a
/// choice.
pub fn reply(request: &Json, weigh: impl Fn(&Asked, &str) -> f64) -> Json {
    let state = request.get("state").or(request.get("input")).cloned().unwrap_or_default();
    let state = state.as_str().map_or_else(|| state.to_string(), str::to_owned);
    let answer = |question: &Json| {
        let of_choices =
            question["choices"].as_array().into_iter().flatten().filter_map(|one| one["value"].as_str());
        let of_criteria =
            question["criteria"].as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let options: Vec<String> = of_choices.chain(of_criteria).map(str::to_owned).collect();
        let instructions = question["instructions"].as_str().unwrap_or_default().to_owned();
        let asked = Asked { instructions, state: state.clone(), options };
        let mut answer = json!({"type": question["type"], "name": question["name"], "confidence": 0.5});
        if asked.options.is_empty() {
            let field = if question["type"] == "noul" { "noul" } else { "probability" };
            answer[field] = json!(weigh(&asked, "yes"));
            return answer;
        }
        let sum: f64 = asked.options.iter().map(|option| weigh(&asked, option)).sum();
        let share = |option: &String| weigh(&asked, option) / sum;
        answer["choice"] =
            json!(asked.options.iter().max_by(|one, other| share(one).total_cmp(&share(other))));
        answer["probabilities"] = match question.get("choices") {
            Some(_) => {
                asked.options.iter().map(|one| json!({"value": one, "probability": share(one)})).collect()
            }
            None => {
                asked.options.iter().map(|one| (one.clone(), json!(share(one)))).collect::<Map<_, _>>().into()
            }
        };
        answer
    };
    let answers: Json = match &request["questions"] {
        Json::Object(all) => {
            all.iter().map(|(name, one)| (name.clone(), answer(one))).collect::<Map<_, _>>().into()
        }
        all => all.as_array().into_iter().flatten().map(answer).collect(),
    };
    let usage = json!({"input_tokens": 25, "output_tokens": 1});
    json!({"model": request["model"], "answers": answers, "usage": usage})
}

/// A decision model on loopback.
pub struct DecisionServer {
    /// The address, as far as `/v1`.
    pub url: String,
    requests: Arc<Mutex<Vec<(String, Json)>>>,
}

impl DecisionServer {
    /// Starts a server that answers with [`reply`]. It runs until the process ends.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start(weigh: impl Fn(&Asked, &str) -> f64 + Send + 'static) -> DecisionServer {
        DecisionServer::start_raw(move |request| reply(request, &weigh).to_string())
    }

    /// Starts a server whose response to a request is the text of `respond`.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start_raw(respond: impl Fn(&Json) -> String + Send + 'static) -> DecisionServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let server = DecisionServer { url: format!("http://{address}/v1"), requests: Arc::default() };
        let requests = Arc::clone(&server.requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that disconnects does not stop the server.
                let Some((path, request)) = read_request(&stream) else { continue };
                let body = respond(&request);
                requests.lock().unwrap_or_else(PoisonError::into_inner).push((path, request));
                let head = format!("content-type: application/json\r\ncontent-length: {}", body.len());
                let response = format!("HTTP/1.1 200 OK\r\n{head}\r\nconnection: close\r\n\r\n{body}");
                let _ = (&stream).write_all(response.as_bytes());
            }
        });
        server
    }

    /// The paths and bodies of the requests so far.
    pub fn requests(&self) -> Vec<(String, Json)> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The path and the body of a request.
fn read_request(stream: &TcpStream) -> Option<(String, Json)> {
    let mut reader = BufReader::new(stream);
    let head = (&mut reader).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let head: Vec<String> = head.collect();
    let path = head.first()?.split(' ').nth(1)?.to_owned();
    let length =
        |header: &String| header.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok();
    let mut body = vec![0; head.iter().find_map(length).unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((path, serde_json::from_slice(&body).ok()?))
}
