import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { client, facts, sequences } from './facts.js';

const question = { model: facts.model, max_tokens: 4, messages: [{ role: 'user', content: 'Hi' }] };

test('models', async () => {
  assert.equal((await client.models.retrieve(facts.model)).id, facts.model); // which has a slash
});

test('a wrong key', async () => {
  const stranger = client.withOptions({ apiKey: 'sk-other' });
  await assert.rejects(stranger.chat.completions.create(question), (e) => {
    assert.ok(e instanceof OpenAI.AuthenticationError);
    assert.equal(e.code, 'invalid_api_key');
    return true;
  });
});

test('a full queue', async () => {
  const leave = new AbortController();
  const hold = async () => {
    const stream = await client.chat.completions.create({ ...question, max_tokens: 8000, ignore_eos: true, stream: true }, { signal: leave.signal });
    for await (const _ of stream);
  };
  const held = [hold()];
  await sequences('running', 1);
  held.push(hold());
  await sequences('waiting', 1);
  await assert.rejects(client.chat.completions.create(question), (e) => {
    assert.ok(e instanceof OpenAI.RateLimitError);
    assert.equal(e.code, 'queue_full');
    assert.match(e.headers.get('retry-after'), /^[0-9]+$/);
    return true;
  });

  // The others leave after the first refusal, and the client comes again by itself.
  const statuses = [];
  const patient = client.withOptions({
    maxRetries: 2,
    fetch: async (...args) => {
      const response = await fetch(...args);
      statuses.push(response.status);
      if (response.status === 429) {
        leave.abort();
        await Promise.allSettled(held);
        await sequences('running', 0);
      }
      return response;
    },
  });
  assert.equal((await patient.chat.completions.create(question)).usage.completion_tokens, 4);
  assert.deepEqual(statuses, [429, 200]);
});
