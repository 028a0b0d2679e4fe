"""What the server has to say, from the Go tests that run these."""

import json
import os
import re
import time
import urllib.request
from types import SimpleNamespace

import openai

with open(os.environ["FACTS"], encoding="utf-8") as f:
    facts = json.load(f, object_hook=lambda d: SimpleNamespace(**d))


def client(**options):
    """Does not try again unless it is told to: what the server answers first is what counts."""
    defaults = {"api_key": getattr(facts, "key", "none"), "max_retries": 0}
    return openai.OpenAI(base_url=facts.url + "/v1", **{**defaults, **options})


def sequences(state, n):
    """Waits until n sequences are running, or waiting."""
    line = re.compile(r'^vllm:num_requests_%s\{model_name="%s"\} (.*)$' % (state, facts.model), re.M)
    late = time.monotonic() + 60
    while True:
        with urllib.request.urlopen(facts.url + "/metrics") as answer:
            found = line.search(answer.read().decode())
        if float(found[1]) == n:
            return
        assert time.monotonic() < late, f"{found[1]} sequences are {state}, want {n}"
        time.sleep(0.02)
