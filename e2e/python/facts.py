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
    return openai.OpenAI(base_url=facts.url + "/v1", api_key="none", max_retries=0, **options)


def running(n):
    """Waits until n sequences run."""
    line = re.compile(r'^vllm:num_requests_running\{model_name="%s"\} (.*)$' % facts.model, re.M)
    late = time.monotonic() + 60
    while True:
        with urllib.request.urlopen(facts.url + "/metrics") as answer:
            found = line.search(answer.read().decode())
        if float(found[1]) == n:
            return
        assert time.monotonic() < late, f"{found[1]} sequences run, want {n}"
        time.sleep(0.02)
