"""One backend in many loops, threads and processes; its key in none of its traces."""

import asyncio
import copy
import gc
import multiprocessing
import os
import pickle
import threading
import time

import pytest

from rlver_gym.backends import SamplingConfig
from rlver_gym.backends.cassette import Cassette
from rlver_gym.backends.limits import Retrying
from rlver_gym.backends.openai import OpenAIBackend
from rlver_gym.errors import BackendError
from tests.backends.openai_cases import MARKER, PLAIN, answer_of, ask
from tests.fake_openai import FakeOpenAI, Response, completion, error


def open_connections():
    # By type: isinstance would ask each object for its __class__, and some objects of other packages warn when asked.
    return sum(issubclass(type(obj), asyncio.Transport) and not obj.is_closing() for obj in gc.get_objects())


async def wave(backend, size):
    return await asyncio.gather(*(backend.generate(PLAIN, SamplingConfig(seed=i)) for i in range(size)))


def test_a_wave_overlaps_in_time_and_waits_for_a_slot_without_losing_its_deadline():
    with FakeOpenAI(lambda body, index: Response(body=completion("ok"), delay=0.5)) as server:
        asyncio.run(wave(OpenAIBackend("m", base_url=server.base_url), 32))
        assert max(r.t_start for r in server.requests) < min(r.t_end for r in server.requests)
        server.requests.clear()
        asyncio.run(wave(OpenAIBackend("m", base_url=server.base_url, max_concurrency=2, timeout=1.2), 6))
    marks = sorted([(r.t_start, 1) for r in server.requests] + [(r.t_end, -1) for r in server.requests])
    running = [sum(step for _, step in marks[: i + 1]) for i in range(len(marks))]
    assert len(server.requests) == 6 and max(running) == 2


def test_one_backend_serves_loop_after_loop_and_leaves_no_connection_open(recwarn):
    with FakeOpenAI(lambda body, index: Response(body=completion("ok"), delay=0.1)) as server:
        backend = OpenAIBackend("m", base_url=server.base_url)
        for _ in range(3):
            assert len(asyncio.run(wave(backend, 20))) == 20
        asyncio.run(wave(OpenAIBackend("m", base_url=server.base_url), 20))
        gc.collect()
        asyncio.run(backend.aclose())
        asyncio.run(backend.aclose())
    assert [str(w.message) for w in recwarn if issubclass(w.category, (ResourceWarning, RuntimeWarning))] == []


def test_connections_are_used_again_within_a_loop():
    async def thrice(backend):
        for _ in range(3):
            await backend.generate(PLAIN, SamplingConfig())

    with FakeOpenAI(lambda body, index: "ok") as server:
        asyncio.run(thrice(OpenAIBackend("m", base_url=server.base_url)))
    assert len({request.port for request in server.requests}) == 1


def test_a_backend_that_is_let_go_closes_what_it_opened():
    async def use_and_drop(url):
        counts = [open_connections()]
        backend = OpenAIBackend("m", base_url=url)
        await asyncio.gather(*(backend.generate(PLAIN, SamplingConfig()) for _ in range(9)))
        counts.append(open_connections())
        del backend
        await asyncio.sleep(0.2)
        return [*counts, open_connections()]

    with FakeOpenAI(lambda body, index: Response(body=completion("ok"), delay=0.1)) as server:
        before, during, after = asyncio.run(use_and_drop(server.base_url))
    assert (during - before, after - before) == (9, 0)


def test_two_threads_share_a_backend_and_one_may_close_for_both():
    with FakeOpenAI(lambda body, index: Response(body=completion("ok"), delay=0.2)) as server:
        backend, texts, done = OpenAIBackend("m", base_url=server.base_url), [], threading.Barrier(3, timeout=10)

        async def work():
            texts.append((await backend.generate(PLAIN, SamplingConfig())).text)
            await asyncio.to_thread(done.wait)
            await asyncio.to_thread(done.wait)
            texts.append((await backend.generate(PLAIN, SamplingConfig())).text)

        threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(2)]
        for thread in threads:
            thread.start()
        done.wait()
        before = open_connections()
        asyncio.run(backend.aclose())
        assert before - open_connections() == 2
        done.wait()
        for thread in threads:
            thread.join(10)
    assert texts == ["ok"] * 4
    first, second = server.requests[:2]
    assert max(first.t_start, second.t_start) < min(first.t_end, second.t_end)


def _child(backend, pipe):
    start = time.monotonic()
    text = ask(backend).text
    pipe.send((text, time.monotonic() - start))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_after_a_call_leaves_the_parents_connections_alone():
    with FakeOpenAI(lambda body, index: str(index)) as server:
        backend = OpenAIBackend("m", base_url=server.base_url)

        async def around_a_fork():
            await backend.generate(PLAIN, SamplingConfig())
            processes = multiprocessing.get_context("fork")
            receiver, sender = processes.Pipe(duplex=False)
            child = processes.Process(target=_child, args=(backend, sender))
            child.start()
            assert receiver.poll(20)
            text, seconds = receiver.recv()
            assert text == "1" and seconds < 4, "the child must not wait for its parent's loop"
            child.join(20)
            assert child.exitcode == 0
            return await backend.generate(PLAIN, SamplingConfig())

        assert asyncio.run(around_a_fork()).text == "2"
    first, in_the_child, after = server.requests
    assert first.port == after.port != in_the_child.port, "each process has connections of its own"


def test_pickles_and_copies_work_before_and_after_a_call(monkeypatch):
    with FakeOpenAI(lambda body, index: "ok") as server:
        monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
        backend = OpenAIBackend("m", base_url=server.base_url, api_key=MARKER, timeout=7.0)
        for _ in range(2):
            for twin in (pickle.loads(pickle.dumps(backend)), copy.deepcopy(backend)):
                assert ask(twin).text == "ok" and "timeout=7.0" in repr(twin)
                assert server.requests[-1].headers["authorization"] == "Bearer from-the-environment"
            ask(backend)
            assert server.requests[-1].headers["authorization"] == f"Bearer {MARKER}"


def test_the_key_appears_nowhere(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("OPENAI_API_KEY", MARKER)
    found = []
    answers = [
        error(401, f"Incorrect API key provided: {MARKER}."),
        error(429, MARKER),
        {"error": {"message": f"no such key {MARKER}"}},
        completion(None, refusal=f"not with {MARKER}"),
        Response(307, {"location": f"http://127.0.0.1:1/{MARKER}"}),
    ]
    for answer in answers:
        with pytest.raises(BackendError) as caught:
            answer_of(answer)
        assert "***" in str(caught.value), "the server's own words were to be scrubbed"
        found += [str(caught.value), repr(caught.value), repr(caught.value.details), pickle.dumps(caught.value)]
    with FakeOpenAI(lambda body, index: "ok") as server:
        caplog.clear()
        caplog.set_level("DEBUG")
        inner = OpenAIBackend("m", base_url=server.base_url, api_key=MARKER)
        ask(Cassette(tmp_path / "c.jsonl", Retrying(inner)))
        assert MARKER in server.requests[0].headers["authorization"] and "POST" in caplog.text
    found += [repr(inner), repr(Retrying(inner)), inner.name, pickle.dumps(inner), repr(inner.dialect.summary())]
    found += [caplog.text, (tmp_path / "c.jsonl").read_text(encoding="utf-8")]
    assert not [text for text in found if MARKER in (text if isinstance(text, str) else text.decode("latin-1"))]
