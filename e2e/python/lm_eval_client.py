"""lm-evaluation-harness' own client, local-completions, against a published
model: what it asks for evaluations, and how it reads the answers."""

import unittest

from lm_eval.api.instance import Instance
from lm_eval.models.openai_completions import LocalCompletionsAPI

from facts import facts

want = facts.want
ids = want.prompt_ids + want.ids


def model(**options):
    # The client finds out by itself that the server has a tokenizer.
    return LocalCompletionsAPI(base_url=facts.url + "/v1/completions", model=facts.model, max_retries=1, max_length=4096, **options)


def instances(kind, *arguments):
    return [Instance(request_type=kind, doc={}, arguments=a, idx=i) for i, a in enumerate(arguments)]


def sums(*splits):
    """What is to come of contexts that end at a split, and continuations that
    end at the other: the log-probability, and whether all is greedy."""
    return [(sum(want.logprobs[a - 1:b - 1]), all(want.greedy[a - 1:b - 1])) for a, b in splits]


class Evaluation(unittest.TestCase):
    def check(self, got, expected):
        self.assertEqual([greedy for _, greedy in got], [greedy for _, greedy in expected])
        for (a, _), (b, _) in zip(got, expected, strict=True):
            self.assertAlmostEqual(a, b, delta=1e-3)

    def test_loglikelihood(self):
        n = len(want.prompt_ids)
        splits = [(n, len(ids)), (1, n), (n, n + 1), (n // 2, n + 3), (2, len(ids))]
        self.assertEqual({greedy for _, greedy in sums(*splits)}, {True, False})
        requests = [(None, ids[:a], ids[a:b]) for a, b in splits]
        for options in ({}, {"batch_size": 3}, {"num_concurrent": 4}):
            with self.subTest(**options):
                self.check(model(**options)._loglikelihood_tokens(requests), sums(*splits))

    def test_texts(self):
        lm = model(batch_size=2)
        self.assertEqual(lm.tokenizer_backend, "remote")
        self.assertEqual(lm.tok_encode(want.prompt), want.prompt_ids)
        words = want.prompt.split(" ")
        cut = len(words) // 2
        context, continuation = " ".join(words[:cut]), " " + " ".join(words[cut:])
        a = len(lm.tok_encode(context))
        self.check(lm.loglikelihood(instances("loglikelihood", (context, continuation))), sums((a, len(want.prompt_ids))))

    def test_rolling(self):
        (got,) = model().loglikelihood_rolling(instances("loglikelihood_rolling", (want.prompt,)))
        self.assertAlmostEqual(got, want.rolling, delta=1e-3)

    def test_generate(self):
        stop = want.text.split(" ")[5]
        before = want.text.split(stop)[0]
        requests = instances(
            "generate_until",
            (want.prompt, {"until": [stop], "max_gen_toks": len(want.ids), "do_sample": False}),
            (want.prompt, {"until": [stop], "max_gen_toks": len(want.ids), "do_sample": False}),
        )
        for options in ({}, {"batch_size": 2}, {"num_concurrent": 2}):
            with self.subTest(**options):
                got = model(**options).generate_until(requests, disable_tqdm=True)
                self.assertEqual([text.lstrip() for text in got], [before] * 2)


unittest.main()
