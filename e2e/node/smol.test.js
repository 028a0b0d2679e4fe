import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { client, facts, sequences } from './facts.js';

const { model, want } = facts;
const question = { model, temperature: 0, messages: [{ role: 'user', content: want.question }] };
const completion = { model, prompt: want.prompt, max_tokens: want.ids.length, temperature: 0, ignore_eos: true };

const near = (got, expected) =>
  assert.ok(Math.abs(got - expected) < 1e-4, `log-probability ${got}, want ${expected}`);

test('models', async () => {
  const ids = [];
  for await (const m of client.models.list()) ids.push(m.id);
  assert.deepEqual(ids, [model]);
  assert.equal((await client.models.retrieve(model)).id, model);
});

test('completion', async () => {
  const got = await client.completions.create(completion);
  assert.equal(got.choices.length, 1);
  assert.equal(got.choices[0].text.trim(), want.text);
  assert.equal(got.choices[0].finish_reason, 'length');
  assert.equal(got.choices[0].logprobs, null);
  assert.equal(got.usage.prompt_tokens, want.prompt_ids.length);
  assert.equal(got.usage.completion_tokens, want.ids.length);

  const batch = await client.completions.create({ ...completion, prompt: [want.prompt_ids, want.prompt_ids], n: 2 });
  assert.deepEqual(batch.choices.map((c) => c.index), [0, 1, 2, 3]);
  for (const c of batch.choices) assert.equal(c.text.trim(), want.text);
});

test('completion stream', async () => {
  const stream = await client.completions.create({ ...completion, stream: true, stream_options: { include_usage: true } });
  let text = '';
  const finished = [];
  let usage;
  for await (const chunk of stream) {
    for (const c of chunk.choices) {
      assert.equal(finished.length, 0);
      text += c.text;
      if (c.finish_reason) finished.push(c.finish_reason);
    }
    if (chunk.choices.length === 0) usage = chunk.usage;
    else assert.equal(chunk.usage, null);
  }
  assert.equal(text.trim(), want.text);
  assert.deepEqual(finished, ['length']);
  assert.equal(usage.total_tokens, want.prompt_ids.length + want.ids.length);
});

test('completion log-probabilities', async () => {
  const got = await client.completions.create({ ...completion, echo: true, logprobs: 2 });
  const p = got.choices[0].logprobs;
  assert.equal(p.token_logprobs[0], null);
  assert.equal(p.top_logprobs[0], null);
  want.logprobs.forEach((expected, i) => {
    near(p.token_logprobs[i + 1], expected);
    const best = Math.max(...Object.values(p.top_logprobs[i + 1]));
    assert.equal(best === p.token_logprobs[i + 1], want.greedy[i], p.tokens[i + 1]);
  });
  assert.equal(p.tokens.length, want.logprobs.length + 1);
  assert.equal(p.tokens.join(''), got.choices[0].text);
});

test('chat', async () => {
  const got = await client.chat.completions.create(question);
  assert.equal(got.choices[0].message.content, want.answer);
  assert.equal(got.choices[0].message.refusal, null);
  assert.equal(got.id, `chatcmpl-${got._request_id}`); // of the header, for reports
  assert.equal(got.choices[0].finish_reason, 'stop');
  assert.equal(got.usage.prompt_tokens, want.question_ids.length);
  assert.equal(got.usage.completion_tokens, want.answer_ids.length);

  const messages = [{ role: 'developer', content: [{ type: 'text', text: facts.system }] }, ...question.messages];
  assert.equal((await client.chat.completions.create({ ...question, messages })).choices[0].message.content, want.instructed);
});

test('chat stream', async () => {
  const deltas = [];
  const runner = client.chat.completions
    .stream({ ...question, logprobs: true, top_logprobs: 1, stream_options: { include_usage: true } })
    .on('content', (delta) => deltas.push(delta));
  const got = await runner.finalChatCompletion();
  assert.equal(got.choices[0].message.content, want.answer);
  assert.equal(got.choices[0].message.role, 'assistant');
  assert.equal(got.choices[0].finish_reason, 'stop');
  assert.equal(deltas.join(''), want.answer);
  assert.ok(deltas.length > 1);
  assert.equal(got.usage.completion_tokens, want.answer_ids.length);
  const tokens = got.choices[0].logprobs.content;
  assert.equal(tokens.length, want.answer_ids.length);
  const bytes = tokens.slice(0, -1).flatMap((token) => token.bytes);
  assert.equal(Buffer.from(bytes).toString(), want.answer);
  for (const token of tokens) assert.equal(token.top_logprobs[0].token, token.token);
});

test('responses', async () => {
  const got = await client.responses.create({ model, input: want.question, temperature: 0 });
  assert.equal(got.output_text, want.answer);
  assert.equal(got.status, 'completed');
  assert.equal(got.usage.output_tokens, want.answer_ids.length);

  const types = [];
  const stream = client.responses.stream({ model, input: want.question, temperature: 0 });
  for await (const event of stream) types.push(event.type);
  assert.equal((await stream.finalResponse()).output_text, want.answer);
  assert.equal(types[0], 'response.created');
  assert.equal(types.at(-1), 'response.completed');
});

test('errors', async () => {
  await assert.rejects(client.chat.completions.create({ ...question, model: 'gpt-4' }), (e) => {
    assert.ok(e instanceof OpenAI.NotFoundError);
    assert.equal(e.code, 'model_not_found');
    assert.equal(e.param, 'model');
    return true;
  });
  await assert.rejects(client.chat.completions.create({ ...question, temperature: -1 }), (e) => {
    assert.ok(e instanceof OpenAI.BadRequestError);
    assert.equal(e.param, 'temperature');
    assert.equal(e.type, 'invalid_request_error');
    return true;
  });
  const body = { ...question, response_format: { type: 'json_schema', json_schema: { name: 'a', schema: {} } }, stream: true };
  await assert.rejects(client.chat.completions.create(body), (e) => {
    assert.ok(e instanceof OpenAI.BadRequestError);
    assert.equal(e.param, 'response_format');
    return true;
  });
});

test('a body beyond the limit', async () => {
  await assert.rejects(client.completions.create({ ...completion, prompt: 'word '.repeat(4 << 20) }), (e) => {
    assert.equal(e.status, 413);
    assert.equal(e.code, 'request_too_large');
    return true;
  });
});

test('abort', async () => {
  const long = { ...question, ignore_eos: true };
  const stream = await client.chat.completions.create({ ...long, stream: true });
  for await (const chunk of stream) {
    if (chunk.choices[0].delta.content) break; // which ends the request
  }
  await sequences('running', 0);

  const abort = new AbortController();
  const answer = client.chat.completions.create(long, { signal: abort.signal });
  const ended = assert.rejects(answer, OpenAI.APIUserAbortError);
  await sequences('running', 1);
  abort.abort();
  await ended;
  await sequences('running', 0);

  await assert.rejects(client.chat.completions.create(long, { timeout: 1000 }), OpenAI.APIConnectionTimeoutError);
  await sequences('running', 0);
});
