"""OpenAI's client for Python against a server that wants a key and is soon full."""

import asyncio
import unittest

import openai

from facts import client, facts, sequences

question = dict(model=facts.model, max_tokens=4, messages=[{"role": "user", "content": "Hi"}])


class Small(unittest.TestCase):
    def test_models(self):
        with client() as c:
            self.assertEqual(c.models.retrieve(facts.model).id, facts.model)  # which has a slash

    def test_a_wrong_key(self):
        with client(api_key="sk-other") as c, self.assertRaises(openai.AuthenticationError) as caught:
            c.chat.completions.create(**question)
        self.assertEqual(caught.exception.code, "invalid_api_key")

    def test_a_full_queue(self):
        asyncio.run(self.full_queue())

    async def full_queue(self):
        options = {"base_url": facts.url + "/v1", "api_key": facts.key}
        long = {**question, "max_tokens": 8000, "stream": True, "extra_body": {"ignore_eos": True}}

        async def hold():
            async for _ in await c.chat.completions.create(**long):
                pass

        statuses = []

        async def seen(response):
            statuses.append(response.status_code)
            if response.status_code == 429:
                for task in held:
                    task.cancel()
                await asyncio.gather(*held, return_exceptions=True)
                await asyncio.to_thread(sequences, "running", 0)

        async with openai.AsyncOpenAI(**options, max_retries=0) as c:
            held = [asyncio.create_task(hold())]
            await asyncio.to_thread(sequences, "running", 1)
            held.append(asyncio.create_task(hold()))
            await asyncio.to_thread(sequences, "waiting", 1)
            with self.assertRaises(openai.RateLimitError) as caught:
                await c.chat.completions.create(**question)
            self.assertEqual(caught.exception.code, "queue_full")
            self.assertRegex(caught.exception.response.headers["retry-after"], "^[0-9]+$")

            # The others leave after the refusal, and the client comes again by itself.
            hooks = openai.DefaultAsyncHttpxClient(event_hooks={"response": [seen]})
            async with openai.AsyncOpenAI(**options, max_retries=2, http_client=hooks) as patient:
                got = await patient.chat.completions.create(**question)
            self.assertEqual(got.usage.completion_tokens, 4)
            self.assertEqual(statuses, [429, 200])


unittest.main()
