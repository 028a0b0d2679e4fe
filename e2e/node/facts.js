import { readFileSync } from 'node:fs';
import OpenAI from 'openai';

// What the server has to say, from the Go tests that run these.
export const facts = JSON.parse(readFileSync(process.env.FACTS, 'utf8'));

export const client = new OpenAI({ baseURL: `${facts.url}/v1`, apiKey: 'none', maxRetries: 0 });

// running waits until so many sequences run.
export async function running(n) {
  const line = new RegExp(`^vllm:num_requests_running\\{model_name="${facts.model}"\\} (.*)$`, 'm');
  const late = Date.now() + 60_000;
  for (;;) {
    const text = await (await fetch(`${facts.url}/metrics`)).text();
    const found = line.exec(text);
    if (!found) throw new Error(`/metrics has no ${line}`);
    if (Number(found[1]) === n) return;
    if (Date.now() > late) throw new Error(`${found[1]} sequences run, want ${n}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}
