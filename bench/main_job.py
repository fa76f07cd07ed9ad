"""The main job: from one command to files, from a push to work, and what a video costs."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import cpu
from bench.figures import Figure, gives
from include.ytdlp_ops.downloading.options import ffmpeg_path
from include.ytdlp_ops.local.environment import base_environment
from include.ytdlp_ops.local.folder import REPOSITORY
from include.ytdlp_ops.local.stack import Stack
from include.ytdlp_ops.local.watching import SeenUrl, Watch
from include.ytdlp_ops.models import UrlItem
from include.ytdlp_ops.queues.connecting import connect
from include.ytdlp_ops.queues.keys import Stage
from include.ytdlp_ops.queues.queue import Queue

if TYPE_CHECKING:
    from redis import Redis

FORMATS = "299+140"
PUSHES = 20
VIDEOS = 40
PATIENCE_SECONDS = 300


@gives("seconds_to_ui_ready", "seconds_to_first_file")
def first_run() -> dict[str, Figure]:
    """The command that a new user types, on a folder that does not exist."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        command = [sys.executable, "-m", "include.ytdlp_ops.local", "--once", "--data-dir", f"{folder}/local"]
        subprocess.run(command, cwd=REPOSITORY, env=base_environment(), check=True, stdout=subprocess.DEVNULL)
        report = json.loads(Path(folder, "local", "last_run.json").read_text())
    return {
        "seconds_to_ui_ready": Figure(value=report["seconds_to_ready"], unit="s"),
        "seconds_to_first_file": Figure(value=report["seconds_to_first_file"], unit="s"),
    }


@gives("push_to_running_median_s", "push_to_running_max_s")
def push_to_running() -> dict[str, Figure]:
    """Single pushes into an idle stack, as any producer does them: until the worker has begun, in Redis' time."""
    waits = []
    with _ready_stack() as (_, client):
        queue = Queue(client, Stage.AUTH)
        for number in range(PUSHES):
            url = f"https://www.youtube.com/watch?v={_video_id(number)}"
            element = json.dumps({"url": url, "formats": FORMATS})
            pushing: Any = client.pipeline()
            pushed, _ = pushing.time().rpush(queue.keys.inbox, element).execute()
            started_at = _wait_for_begin(queue, url)
            waits.append(datetime.fromisoformat(started_at).timestamp() - pushed[0] - pushed[1] / 1e6)
            _wait_for_end(Watch(client, [UrlItem(url=url, formats=FORMATS)]))
            time.sleep(2)  # idle again: no dispatcher runs for what has just been done
    against = f"{PUSHES} pushes, one after another"
    return {
        "push_to_running_median_s": Figure(value=statistics.median(waits), unit="s", against=against),
        "push_to_running_max_s": Figure(value=max(waits), unit="s", against=against),
    }


@gives("cpu_per_video_over_shell_loop", "cpu_per_video_v01_over_shell_loop")
def cpu_per_video() -> dict[str, Figure]:
    """What the whole system spends on a video, beside yt-dlp started once for each URL, at the same site."""
    with _ready_stack() as (stack, client):
        system = {pid for name, pid in stack.parts.sessions.items() if name != "site"}
        _archive(client, range(4))  # workers have been forked, code is warm
        before = cpu.of_trees(system)
        _archive(client, range(100, 100 + VIDEOS))
        v02 = (cpu.of_trees(system) - before) / VIDEOS
        before = cpu.of_trees(system)
        _archive_in_one_run(client, range(300, 300 + VIDEOS))
        v01 = (cpu.of_trees(system) - before) / VIDEOS
        loops = _shell_loop(stack, range(200, 200 + VIDEOS)) / VIDEOS
    against = f"s a video, the shell loop {loops:.2f} s; {VIDEOS} videos, {FORMATS}"
    return {
        "cpu_per_video_over_shell_loop": Figure(value=v02 / loops, unit="x", against=f"{v02:.2f} {against}"),
        "cpu_per_video_v01_over_shell_loop": Figure(value=v01 / loops, unit="x", against=f"{v01:.2f} {against}"),
    }


@gives("dag_parse_over_sdk_s")
def dag_parse() -> dict[str, Figure]:
    """What importing all DAG files takes beyond `import airflow.sdk`, each in a fresh interpreter."""
    files = [str(path) for path in sorted((REPOSITORY / "dags").glob("*.py"))]
    imports = f"import runpy; [runpy.run_path(path) for path in {files!r}]"
    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        env = base_environment() | {"AIRFLOW_HOME": home}
        for program in (imports, "import airflow.sdk"):  # bytecode is there from now on
            subprocess.run([sys.executable, "-c", program], env=env, cwd=REPOSITORY, check=True)
        sdk, dags = (_quickest(program, env) for program in ("import airflow.sdk", imports))
    against = f"{len(files)} files {dags:.2f} s, import airflow.sdk {sdk:.2f} s; best of 5, CPU time"
    return {"dag_parse_over_sdk_s": Figure(value=dags - sdk, unit="s", against=against)}


@contextmanager
def _ready_stack() -> Iterator[tuple[Stack, Redis]]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, Stack(Path(folder, "local")) as stack:
        stack.wait_ready()
        client = connect(stack.redis_address)
        try:
            yield stack, client
        finally:
            client.close()


def _video_id(number: int) -> str:
    return f"ok-{number:08d}"


def _archive(client: Redis, numbers: Sequence[int]) -> None:
    items = [UrlItem(url=_video_id(number), formats=FORMATS) for number in numbers]
    urls = _wait_for_end(Watch(client, items))
    files = sum(len(url.files) for url in urls)
    if files != len(items):
        raise RuntimeError(f"{files} files of {len(items)}: {[url.decisive.record for url in urls][:1]}")


def _archive_in_one_run(client: Redis, numbers: Sequence[int]) -> None:
    queue = Queue(client, Stage.V01)
    queue.submit([UrlItem(url=_video_id(number), formats=FORMATS) for number in numbers])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (depths := queue.depths())["result"] != len(numbers):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not {len(numbers)} of v01 have ended: {depths}")
        time.sleep(0.5)


def _wait_for_end(watch: Watch) -> list[SeenUrl]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        urls = watch.look()
        waiting = sum(not url.ended for url in urls)
        if not waiting:
            return urls
        if time.monotonic() > deadline:
            raise TimeoutError(f"{waiting} of {len(urls)} have not ended")
        time.sleep(0.5)  # looking costs CPU as well


def _wait_for_begin(queue: Queue, item_id: str) -> str:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = queue.find(item_id)
        if found and "started_at" in found[1]:
            return str(found[1]["started_at"])
        time.sleep(0.05)
    raise TimeoutError(f"{item_id} did not begin")


def _shell_loop(stack: Stack, numbers: Sequence[int]) -> float:
    """CPU seconds of ``yt-dlp -f 299+140 URL``, once a URL, at the sample site."""
    env = base_environment() | {"SSL_CERT_FILE": str(stack.ca_file)}
    before = _children()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        command = [sys.executable, "-m", "yt_dlp", "--ignore-config", "--quiet", "--no-warnings"]
        command += ["--compat-options", "no-certifi", "--proxy", stack.proxy("egress1"), "-f", FORMATS]
        command += ["--ffmpeg-location", str(ffmpeg_path())]  # it merges, as we do
        for number in numbers:
            url = f"https://www.youtube.com/watch?v={_video_id(number)}"
            subprocess.run([*command, url], env=env, cwd=folder, check=True)
        made = len(list(Path(folder).iterdir()))
    if made != len(numbers):
        raise RuntimeError(f"the shell loop made {made} files")
    return _children() - before


def _quickest(program: str, env: dict[str, str]) -> float:
    """CPU seconds of a fresh interpreter, the least of five: what else the machine does is not ours."""
    spent = []
    for _ in range(5):
        before = _children()
        subprocess.run([sys.executable, "-c", program], env=env, cwd=REPOSITORY, check=True)
        spent.append(_children() - before)
    return min(spent)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
