"""Calls of the program, and what becomes of its answers."""

from __future__ import annotations

import asyncio
import json
import pickle
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import quorate
import quorate.aio

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_a_review_has_a_verdict_a_run_and_findings(place: Path) -> None:
    review = quorate.review("draft.md")
    assert (review.verdict, review.ships, review.artifact) == ("SHIP", True, "draft.md")
    assert review.run.startswith("r") and review.schema == "quorate.review/v1"
    blocked = quorate.review(Path("blocked.md"), executor="rubric", policy="strict")
    assert blocked.verdict in ("REVISE", "HOLD") and not blocked.ships
    finding = blocked.findings[0]
    assert finding.line is not None and finding.quote in (place / "blocked.md").read_text()
    assert {deliberator.id for deliberator in blocked.deliberators} >= {"skeptic", "evidence"}
    assert blocked.spent.calls > 0 and blocked.override is None


def test_a_text_is_reviewed_without_a_file(place: Path) -> None:
    assert quorate.review(text=(place / "draft.md").read_text()).artifact == "-"
    with pytest.raises(TypeError):
        quorate.review()
    with pytest.raises(TypeError):
        quorate.review("draft.md", text="Both.")


def test_runs_and_verification_read_the_ledger(place: Path) -> None:
    review = quorate.review("draft.md")
    runs = quorate.runs(limit=5, verdict="ship")
    assert [run.run for run in runs.runs] == [review.run] and runs.runs[0].sealed
    assert quorate.runs(verdict="hold").runs == ()
    verified = quorate.verify()
    assert verified.holds and verified.divergences == () and verified.checkpoints.count == 1
    log = place / ".quorate" / "council_log.jsonl"
    log.write_text(log.read_text().replace("SHIP", "HOLD"))
    changed = quorate.verify()
    assert not changed.holds and changed.divergences[0].what


def test_an_assembly_is_convened(place: Path) -> None:
    shutil.copytree(EXAMPLES / "release-board", place / "board")

    def convene(proposal: str) -> quorate.Convening:
        return quorate.convene(
            "assemblies/release-board",
            proposal=f"proposals/{proposal}.md",
            proposal_class="release",
            cwd=place / "board",
        )

    passed, failed = convene("calendar-feed"), convene("partner-access")
    assert (passed.mode, passed.result, passed.passes) == ("voting", "pass", True)
    assert (failed.result, failed.passes) == ("fail", False)
    assert failed.decision is not None and failed.decision.no == 1
    assert {vote.member for vote in failed.decision.votes} >= {"security", "chair"}
    assert failed.run == quorate.runs(cwd=place / "board", verdict="fail").runs[0].run


def test_a_refusal_has_its_code(place: Path) -> None:
    with pytest.raises(quorate.QuorateError) as empty:
        quorate.runs()
    assert empty.value.code == "quorate:run_unknown"
    with pytest.raises(quorate.QuorateError) as refused:
        quorate.review("absent.md")
    assert (refused.value.code, refused.value.exit) == ("quorate:artifact_missing", 4)
    assert refused.value.diagnostics[0].severity == "refusal" and "absent.md" in str(refused.value)
    with pytest.raises(quorate.QuorateError) as unknown:
        quorate.review("draft.md", executor="nobody")
    assert (unknown.value.code, unknown.value.exit) == ("quorate:kind_unknown", 5)
    with pytest.raises(quorate.QuorateError) as usage:
        quorate.review("draft.md", timeout="soon")
    assert (usage.value.code, usage.value.exit) == ("quorate:usage", 64)
    again = pickle.loads(pickle.dumps(refused.value))
    assert (again.code, again.exit, again.diagnostics) == ("quorate:artifact_missing", 4, refused.value.diagnostics)


@pytest.mark.parametrize("name", ["-", "*.md", "no[1].md", "{draft,blocked}.md"])
def test_a_path_is_one_file_and_no_pattern(place: Path, name: str) -> None:
    with pytest.raises(quorate.QuorateError) as refused:
        quorate.review(name)
    assert refused.value.code == "quorate:artifact_missing"
    shutil.copy("draft.md", "a[1].md")
    assert quorate.review("a[1].md").ships


def test_no_value_is_read_as_an_option(place: Path, fake: Callable[[str], Path]) -> None:
    given = fake("exit 70")
    with pytest.raises(quorate.ProgramError):
        quorate.review("--trust", executor="--trust", made_by="-x", cwd=place)
    words = given.read_text().split("\n")
    assert "--trust" not in words[: words.index("--")]
    assert "--executor=--trust" in words and "--made-by=-x" in words
    assert words[words.index("--") + 1] == "--trust"


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("echo no; exit 0", "python:program_failed"),
        ("exit 0", "python:program_failed"),
        ("echo '{}'", "python:output_unknown"),
        ("echo '{\"schema\": \"quorate.review/v2\"}'", "python:output_unknown"),
        ("echo '[]'", "python:program_failed"),
        ("echo '{\"diagnostics\": []}'", "python:program_failed"),
        ("echo '{\"diagnostics\": [1]}'; exit 5", "python:output_unknown"),
        ("echo 'died' >&2; kill -9 $$", "python:program_failed"),
    ],
)
def test_what_is_no_answer_is_no_verdict(place: Path, fake: Callable[[str], Path], script: str, code: str) -> None:
    fake(script)
    with pytest.raises(quorate.ProgramError) as failed:
        quorate.review("draft.md")
    assert failed.value.code == code


def test_a_verdict_that_is_unknown_is_none(place: Path, fake: Callable[[str], Path]) -> None:
    program = quorate.program()
    printed = subprocess.run([program, "review", "draft.md", "--format=json"], capture_output=True, text=True).stdout
    review = json.loads(printed)
    changes: list[dict[str, object]] = [
        {"verdict": "APPROVED"},
        {"partial": "no"},
        {"tier": True},
        {"findings": {}},
        {"run": None},
    ]
    for change in changes:
        (place / "printed.json").write_text(json.dumps({**review, **change}))
        fake(f"cat '{place}/printed.json'")
        with pytest.raises(quorate.ProgramError) as failed:
            quorate.review("draft.md")
        assert failed.value.code == "python:output_unknown" and next(iter(change)) in str(failed.value)
    (place / "printed.json").write_text(json.dumps({**review, "later": 1}))
    assert quorate.review("draft.md").ships, "a field of a later version is left out"
    fake(f"cat '{place}/printed.json'; exit 5")
    with pytest.raises(quorate.ProgramError):
        quorate.review("draft.md")


def test_a_program_that_is_missing_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORATE_PROGRAM", str(place / "absent"))
    with pytest.raises(quorate.ProgramError) as missing:
        quorate.review("draft.md")
    assert missing.value.code == "python:program_missing" and "absent" in str(missing.value)


def test_coroutines_give_the_same(place: Path) -> None:
    async def all_of_them() -> None:
        one, other = await asyncio.gather(quorate.aio.review("draft.md"), quorate.aio.review("blocked.md"))
        assert one.ships and not other.ships
        assert {run.run for run in (await quorate.aio.runs()).runs} == {one.run, other.run}
        assert (await quorate.aio.verify()).holds
        with pytest.raises(quorate.QuorateError) as refused:
            await quorate.aio.review("absent.md")
        assert refused.value.code == "quorate:artifact_missing"

    asyncio.run(all_of_them())


def test_a_cancelled_task_ends_the_program(place: Path, fake: Callable[[str], Path]) -> None:
    ended, began = place / "ended", place / "began"
    fake(f"trap 'echo > {ended}; exit 130' TERM\necho > {began}\nwhile :; do sleep 0.05; done")

    async def cancelled() -> None:
        task = asyncio.create_task(quorate.aio.review("draft.md"))
        while not began.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    start = time.monotonic()
    asyncio.run(cancelled())
    assert ended.exists() and time.monotonic() - start < 30

