"""OpenAI's client for Python against a published model."""

import asyncio
import unittest

import openai

from facts import client, facts, sequences

want = facts.want
question = dict(model=facts.model, temperature=0, messages=[{"role": "user", "content": want.question}])
completion = dict(model=facts.model, prompt=want.prompt, max_tokens=len(want.ids), temperature=0, extra_body={"ignore_eos": True})


class Smol(unittest.TestCase):
    def setUp(self):
        self.client = client()
        self.addCleanup(self.client.close)

    def test_models(self):
        self.assertEqual([m.id for m in self.client.models.list()], [facts.model])
        self.assertEqual(self.client.models.retrieve(facts.model).id, facts.model)

    def test_completion(self):
        got = self.client.completions.create(**completion)
        self.assertEqual(got.choices[0].text.strip(), want.text)
        self.assertEqual(got.choices[0].finish_reason, "length")
        self.assertEqual(got.usage.prompt_tokens, len(want.prompt_ids))
        self.assertEqual(got.usage.completion_tokens, len(want.ids))

        got = self.client.completions.create(**{**completion, "prompt": [want.prompt_ids, want.prompt_ids]})
        self.assertEqual([(c.index, c.text.strip()) for c in got.choices], [(0, want.text), (1, want.text)])

    def test_completion_stream(self):
        text, finished, usage = "", [], None
        for chunk in self.client.completions.create(**completion, stream=True, stream_options={"include_usage": True}):
            for c in chunk.choices:
                self.assertIsNone(chunk.usage)
                self.assertEqual(finished, [])
                text += c.text
                finished += [c.finish_reason] if c.finish_reason else []
            usage = chunk.usage
        self.assertEqual(text.strip(), want.text)
        self.assertEqual(finished, ["length"])
        self.assertEqual(usage.completion_tokens, len(want.ids))

    def test_completion_log_probabilities(self):
        p = self.client.completions.create(**completion, echo=True, logprobs=1).choices[0].logprobs
        self.assertEqual(len(p.tokens), len(want.logprobs) + 1)
        self.assertIsNone(p.token_logprobs[0])
        for got, expected in zip(p.token_logprobs[1:], want.logprobs):
            self.assertAlmostEqual(got, expected, delta=1e-4)

    def test_chat(self):
        got = self.client.chat.completions.create(**question)
        self.assertEqual(got.choices[0].message.content, want.answer)
        self.assertEqual(got.choices[0].finish_reason, "stop")
        self.assertEqual(got.id, "chatcmpl-" + got._request_id)  # of the header, for reports
        self.assertEqual(got.usage.prompt_tokens, len(want.question_ids))
        self.assertEqual(got.usage.completion_tokens, len(want.answer_ids))

        system = [{"role": "system", "content": facts.system}]
        got = self.client.chat.completions.create(**{**question, "messages": system + question["messages"]}, n=2)
        self.assertEqual([c.message.content for c in got.choices], [want.instructed] * 2)

    def test_chat_stream(self):
        deltas = []
        with self.client.chat.completions.stream(**question, logprobs=True, top_logprobs=2) as stream:
            for event in stream:
                if event.type == "content.delta":
                    deltas.append(event.delta)
                    self.assertEqual("".join(deltas), event.snapshot)
            got = stream.get_final_completion()
        self.assertEqual("".join(deltas), want.answer)
        self.assertGreater(len(deltas), 1)
        self.assertEqual(got.choices[0].message.content, want.answer)
        self.assertEqual(got.choices[0].finish_reason, "stop")
        tokens = got.choices[0].logprobs.content
        self.assertEqual(len(tokens), len(want.answer_ids))
        self.assertEqual(b"".join(bytes(t.bytes) for t in tokens[:-1]).decode(), want.answer)
        self.assertEqual([len(t.top_logprobs) for t in tokens], [2] * len(tokens))

    def test_responses(self):
        got = self.client.responses.create(model=facts.model, input=want.question, temperature=0)
        self.assertEqual((got.output_text, got.status), (want.answer, "completed"))

        with self.client.responses.stream(model=facts.model, input=want.question, temperature=0) as stream:
            types = [event.type for event in stream]
            self.assertEqual(stream.get_final_response().output_text, want.answer)
        self.assertEqual((types[0], types[-1]), ("response.created", "response.completed"))

    def test_errors(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.chat.completions.create(**{**question, "model": "gpt-4"})
        self.assertEqual((caught.exception.code, caught.exception.param), ("model_not_found", "model"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(**{**question, "temperature": -1})
        self.assertEqual((caught.exception.type, caught.exception.param), ("invalid_request_error", "temperature"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(**question, extra_body={"guided_json": {"type": "object"}})
        self.assertEqual(caught.exception.param, "guided_json")

    def test_a_body_beyond_the_limit(self):
        with self.assertRaises(openai.APIStatusError) as caught:
            self.client.completions.create(**{**completion, "prompt": "word " * (4 << 20)})
        self.assertEqual((caught.exception.status_code, caught.exception.code), (413, "request_too_large"))

    def test_leaving(self):
        long = {**question, "extra_body": {"ignore_eos": True}}
        stream = self.client.chat.completions.create(**long, stream=True)
        next(iter(stream))
        sequences("running", 1)
        stream.close()
        sequences("running", 0)
        with self.assertRaises(openai.APITimeoutError):
            self.client.with_options(timeout=1).chat.completions.create(**long)
        sequences("running", 0)

    def test_many_at_a_time(self):
        async def ask(c):
            text = ""
            async for chunk in await c.chat.completions.create(**question, stream=True):
                text += chunk.choices[0].delta.content or ""
            return text

        async def ask_all():
            async with openai.AsyncOpenAI(base_url=facts.url + "/v1", api_key="none", max_retries=0) as c:
                return await asyncio.gather(*(ask(c) for _ in range(8)))

        self.assertEqual(asyncio.run(ask_all()), [want.answer] * 8)


unittest.main()
