"""OpenAI's client for Python against a model that calls functions."""

import unittest

from facts import client, facts

heard = facts.heard
function = {"name": heard.function, "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
question = dict(
    model=facts.model, temperature=0, messages=[{"role": "user", "content": "How is the weather?"}],
    tools=[{"type": "function", "function": function}],
)


class Script(unittest.TestCase):
    def setUp(self):
        self.client = client()
        self.addCleanup(self.client.close)

    def check(self, choice, reasoning):
        m = choice.message
        self.assertEqual((choice.finish_reason, m.content, reasoning), ("tool_calls", heard.content, heard.reasoning))
        self.assertEqual([(c.type, c.function.name, c.function.arguments) for c in m.tool_calls],
                         [("function", heard.function, a) for a in heard.arguments])
        self.assertEqual(len({c.id for c in m.tool_calls}), len(heard.arguments))

    def test_tools(self):
        choice = self.client.chat.completions.create(**question).choices[0]
        self.check(choice, choice.message.reasoning_content)

    def test_tools_stream(self):
        reasoning, done = "", []
        with self.client.chat.completions.stream(**question) as stream:
            for event in stream:
                if event.type == "chunk" and event.chunk.choices:
                    reasoning += getattr(event.chunk.choices[0].delta, "reasoning_content", None) or ""
                if event.type == "tool_calls.function.arguments.done":
                    done.append((event.index, event.name, event.arguments))
            choice = stream.get_final_completion().choices[0]
        self.check(choice, reasoning)
        self.assertEqual(done, [(i, heard.function, a) for i, a in enumerate(heard.arguments)])

    def test_embeddings(self):
        texts = ["hello", "world"]
        got = self.client.embeddings.create(model=facts.model, input=texts)  # base64, which the client decodes
        floats = self.client.embeddings.create(model=facts.model, input=texts, encoding_format="float")
        for i in range(2):
            self.assertEqual(len(got.data[i].embedding), 64)
            for a, b in zip(got.data[i].embedding, floats.data[i].embedding):
                self.assertAlmostEqual(a, b, places=6)


unittest.main()
