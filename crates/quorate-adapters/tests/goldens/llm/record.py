#!/usr/bin/env python3
"""Records the requests that the vendors' own SDKs make for the cases in cases.json, one file for each case.

    python3 -m venv sdk && sdk/bin/pip install anthropic==2.12.0 openai==3.57.0 google-genai==3.4.0 ollama==0.6.3
    sdk/bin/pip install typesafe-sdk==0.7.5
    sdk/bin/python record.py

Each call goes to a server on loopback, which keeps the request and answers 400. Keys are replaced before a file is written.
"""

import http.server
import json
import pathlib
import threading

import anthropic
import ollama
import openai
import typesafe_sdk
from google import genai
from google.genai import types

HERE = pathlib.Path(__file__).parent
KEY = "key-of-a-test"
MAX_TOKENS = 800
# Headers of the connection, and those by which an SDK tells who it is.
TRANSPORT_OR_SDK = (
    "host", "content-length", "accept-encoding", "connection", "user-agent", "x-stainless-", "x-goog-api-client",
    "x-typesafe-",
)
seen = []


class Recorder(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        seen.append((self.command, self.path, list(self.headers.items()), json.loads(body)))
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"error": {"message": "recorded"}}')

    def log_message(self, *_):
        pass


def given(**entries):
    return {key: value for key, value in entries.items() if value is not None}


def blocks(texts, kind, marks):
    """The prompt in blocks; each but the last ends a shared prefix."""
    last = len(texts["prompt"]) - 1
    return [
        {"type": kind, "text": text, **(marks if at < last else {})} for at, text in enumerate(texts["prompt"])
    ]


def messages(base, case, texts):
    marks = {"auto": {"type": "ephemeral"}, "1h": {"type": "ephemeral", "ttl": "1h"}}.get(case["cache"])
    if marks:
        content = blocks(texts, "text", {"cache_control": marks})
    else:
        content = [{"type": "text", "text": "".join(texts["prompt"])}]
    output = given(
        effort=case.get("effort"),
        format={"type": "json_schema", "schema": texts["schema"]} if case["format"] == "schema" else None,
    )
    client = anthropic.Anthropic(api_key=KEY, base_url=base, max_retries=0)
    list(client.messages.create(
        model=case["model"], max_tokens=MAX_TOKENS, stream=True,
        messages=[{"role": "user", "content": content}],
        **given(
            system=None if case.get("plain") else [{"type": "text", "text": texts["system"]}],
            output_config=output or None,
        ),
    ))


def openai_format(case, texts):
    match case["format"]:
        case "schema":
            return {"name": "answer", "strict": True, "schema": texts["schema"]}
        case "json":
            return "json"


def openai_cache(case):
    """The request's cache options, and the mark of a block."""
    match case["cache"]:
        case "off":
            return {"mode": "explicit"}, None
        case "5m":
            return {"mode": "explicit", "ttl": "30m"}, {"prompt_cache_breakpoint": {"mode": "explicit"}}
        case "1h":
            return {"mode": "explicit", "ttl": "12h"}, {"prompt_cache_breakpoint": {"mode": "explicit"}}
    return None, None


def chat(base, case, texts):
    compatible = case.get("compatible")
    options, marks = openai_cache(case)
    content = blocks(texts, "text", marks) if marks else "".join(texts["prompt"])
    asked = [{"role": "user", "content": content}]
    if not case.get("plain"):
        asked.insert(0, {"role": "system" if compatible else "developer", "content": texts["system"]})
    form = openai_format(case, texts)
    if form is not None:
        form = {"type": "json_object"} if form == "json" else {"type": "json_schema", "json_schema": form}
    client = openai.OpenAI(api_key=KEY, base_url=base + "/v1", max_retries=0)
    list(client.chat.completions.create(
        model=case["model"], messages=asked, stream=True, stream_options={"include_usage": True},
        **{"max_tokens" if compatible else "max_completion_tokens": MAX_TOKENS},
        **given(
            response_format=form, prompt_cache_options=options, reasoning_effort=case.get("effort"),
        ),
    ))


def responses(base, case, texts):
    options, marks = openai_cache(case)
    content = blocks(texts, "input_text", marks) if marks else "".join(texts["prompt"])
    form = openai_format(case, texts)
    if form is not None:
        form = {"format": {"type": "json_object"} if form == "json" else {"type": "json_schema", **form}}
    client = openai.OpenAI(api_key=KEY, base_url=base + "/v1", max_retries=0)
    list(client.responses.create(
        model=case["model"], input=[{"role": "user", "content": content}], stream=True, store=False,
        max_output_tokens=MAX_TOKENS,
        **given(
            instructions=None if case.get("plain") else texts["system"], text=form, prompt_cache_options=options,
            reasoning={"effort": case["effort"]} if "effort" in case else None,
        ),
    ))


def gemini(base, case, texts):
    effort = case.get("effort")
    thinking = None
    if effort:
        budget = effort.isdigit()
        thinking = types.ThinkingConfig(
            **({"thinking_budget": int(effort)} if budget else {"thinking_level": effort})
        )
    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=base))
    config = types.GenerateContentConfig(**given(
        system_instruction=None if case.get("plain") else texts["system"],
        response_mime_type=None if case["format"] == "text" else "application/json",
        response_json_schema=texts["schema"] if case["format"] == "schema" else None,
        max_output_tokens=MAX_TOKENS, thinking_config=thinking,
    ))
    list(client.models.generate_content_stream(
        model=case["model"], contents="".join(texts["prompt"]), config=config,
    ))


def ollama_chat(base, case, texts):
    asked = [{"role": "user", "content": "".join(texts["prompt"])}]
    if not case.get("plain"):
        asked.insert(0, {"role": "system", "content": texts["system"]})
    form = {"schema": texts["schema"], "json": "json", "text": None}[case["format"]]
    client = ollama.Client(host=base, headers={"Authorization": f"Bearer {KEY}"})
    list(client.chat(
        model=case["model"], messages=asked, stream=True,
        options=given(num_predict=MAX_TOKENS, num_ctx=case.get("context")),
        **given(format=form, think=case.get("effort")),
    ))


def embed(base, case, texts):
    match case["wire"]:
        case "chat":
            client = openai.OpenAI(api_key=KEY, base_url=base + "/v1", max_retries=0)
            client.embeddings.create(model=case["model"], input=texts["prompt"], encoding_format="float")
        case "gemini":
            client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=base))
            client.models.embed_content(model=case["model"], contents=texts["prompt"])
        case "ollama":
            client = ollama.Client(host=base, headers={"Authorization": f"Bearer {KEY}"})
            client.embed(model=case["model"], input=texts["prompt"], truncate=False)


def decide(base, case, texts):
    asked, options = texts["system"], case.get("options")
    if case["wire"] == "systemone":
        client = typesafe_sdk.TypeSafeClient(
            api_key=KEY, base_url=base, compression=False, retry=typesafe_sdk.RetryPolicy(max_retries=0),
        )
        question = typesafe_sdk.Noul(instructions=asked)
        if options:
            question = typesafe_sdk.Choice(instructions=asked, criteria=options)
        client.system_one(case["state"], {"decision": question}, model=case["model"])
    else:
        client = openai.OpenAI(api_key=KEY, base_url=base + "/v1", max_retries=0)
        question = {"type": "predicate", "name": "decision", "instructions": asked}
        if options:
            choices = [{"value": value, "description": about} for value, about in options.items()]
            question = {**question, "type": "choice", "choices": choices}
        client.decisions.create(model=case["model"], input=case["state"], questions=[question])


WIRES = {"messages": messages, "chat": chat, "responses": responses, "gemini": gemini, "ollama": ollama_chat}


def main():
    given_cases = json.loads((HERE / "cases.json").read_text())
    server = http.server.HTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    calls = [(WIRES[case["wire"]], case) for case in given_cases["cases"]]
    calls += [(embed, case) for case in given_cases["embeddings"]]
    calls += [(decide, case) for case in given_cases["decisions"]]
    for call, case in calls:
        seen.clear()
        try:
            call(base, case, given_cases["texts"])
        except Exception as error:
            if "recorded" not in str(error):
                raise
        [(method, path, headers, body)] = seen
        headers = {name.lower(): value.replace(KEY, "KEY") for name, value in sorted(headers)}
        headers = {name: value for name, value in headers.items() if not name.startswith(TRANSPORT_OR_SDK)}
        golden = {"method": method, "path": path, "headers": headers, "body": body}
        text = json.dumps(golden, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
        assert KEY not in text, case["name"]
        (HERE / f"{case['name']}.json").write_text(text)


main()
