import { readFileSync } from 'node:fs';
import OpenAI from 'openai';

// What the server has to say, from the Go tests that run these.
export const facts = JSON.parse(readFileSync(process.env.FACTS, 'utf8'));

// It does not try again unless it is told to: what the server answers first is what counts.
export const client = new OpenAI({ baseURL: `${facts.url}/v1`, apiKey: facts.key ?? 'none', maxRetries: 0 });

// sequences waits until so many run, or wait.
export async function sequences(state, n) {
  const line = new RegExp(`^vllm:num_requests_${state}\\{model_name="${facts.model}"\\} (.*)$`, 'm');
  const late = Date.now() + 60_000;
  for (;;) {
    const text = await (await fetch(`${facts.url}/metrics`)).text();
    const found = line.exec(text);
    if (!found) throw new Error(`/metrics has no ${line}`);
    if (Number(found[1]) === n) return;
    if (Date.now() > late) throw new Error(`${found[1]} sequences are ${state}, want ${n}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}
