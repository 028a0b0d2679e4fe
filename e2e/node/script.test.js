import assert from 'node:assert/strict';
import { test } from 'node:test';
import { client, facts } from './facts.js';

const { model, heard } = facts;
const question = {
  model,
  temperature: 0,
  messages: [{ role: 'user', content: 'How is the weather?' }],
  tools: [{ type: 'function', function: { name: heard.function, parameters: { type: 'object', properties: { city: { type: 'string' } } } } }],
};

function check(choice) {
  assert.equal(choice.finish_reason, 'tool_calls');
  assert.equal(choice.message.content, heard.content);
  assert.equal(choice.message.reasoning_content, heard.reasoning);
  assert.deepEqual(choice.message.tool_calls.map((c) => c.function.name), heard.arguments.map(() => heard.function));
  assert.deepEqual(choice.message.tool_calls.map((c) => c.function.arguments), heard.arguments);
  assert.ok(choice.message.tool_calls.every((c) => c.type === 'function' && c.id));
}

test('tools', async () => {
  check((await client.chat.completions.create(question)).choices[0]);
});

test('tools stream', async () => {
  const done = [];
  let reasoning = '';
  const stream = client.chat.completions
    .stream(question)
    .on('chunk', (chunk) => (reasoning += chunk.choices[0]?.delta.reasoning_content ?? ''))
    .on('tool_calls.function.arguments.done', (call) => done.push([call.index, call.name, call.arguments]));
  const { choices } = await stream.finalChatCompletion();
  check({ ...choices[0], message: { ...choices[0].message, reasoning_content: reasoning } });
  assert.deepEqual(done, heard.arguments.map((a, i) => [i, heard.function, a]));
});

test('tools run by the client', async () => {
  // The model calls again whatever the results are; the client ends it after one round.
  const called = [];
  const runner = client.chat.completions.runTools(
    {
      ...question,
      tools: [{
        type: 'function',
        function: { name: heard.function, parameters: question.tools[0].function.parameters, parse: JSON.parse, function: (a) => { called.push(a.city); return 'rain'; } },
      }],
    },
    { maxChatCompletions: 1 },
  );
  await runner.done();
  assert.deepEqual(called, heard.arguments.map((a) => JSON.parse(a).city));
});

test('embeddings', async () => {
  // Without encoding_format this client asks for base64 and decodes it.
  const got = await client.embeddings.create({ model, input: ['hello', 'world'] });
  const floats = await client.embeddings.create({ model, input: ['hello', 'world'], encoding_format: 'float' });
  assert.equal(got.data.length, 2);
  got.data.forEach((e, i) => {
    assert.equal(e.index, i);
    assert.equal(e.embedding.length, 64);
    assert.deepEqual(Array.from(e.embedding), floats.data[i].embedding.map(Math.fround));
  });
});
