// Calls the local LLM server with the official JavaScript clients of Ollama and OpenAI, call by call.
//
//   node clients.mjs URL FOLDER
//
// URL: the server, which has the models of tests/llm/conftest.py (tiny, loop, tool, think, see). FOLDER: has node_modules with
// both clients. Prints one line a call; exit code 1 if one of them answers something else than expected.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [url, folder] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(folder), "package.json"));
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const { Ollama } = await load("ollama");
const { default: OpenAI } = await load("openai");

const SENTENCE = " Hello! I am a tiny test model; nothing more.";
const HI = [{ role: "user", content: "Hi" }];
const TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather",
    parameters: { type: "object", properties: { city: { type: "string" } } },
  },
};
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";
const ollama = new Ollama({ host: url });
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", maxRetries: 0 });

let failed = 0;
async function check(name, call) {
  try {
    const got = await call();
    if (got !== true) throw new Error(`it answered ${JSON.stringify(got)}`);
    console.log(`ok    ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${name}: ${error.message}`);
  }
}
async function collect(stream, text) {
  let all = "";
  for await (const part of stream) all += text(part) ?? "";
  return all;
}
async function refusal(call) {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error("it was not refused");
}

await check("ollama generate", async () => (await ollama.generate({ model: "tiny", prompt: "Hi" })).response === SENTENCE);
await check("ollama generate, streamed", async () =>
  (await collect(await ollama.generate({ model: "tiny", prompt: "Hi", stream: true }), (part) => part.response)) === SENTENCE);
await check("ollama generate, options", async () =>
  (await ollama.generate({ model: "loop", prompt: "Hi", options: { num_predict: 3 } })).eval_count === 3);
await check("ollama chat", async () => (await ollama.chat({ model: "tiny", messages: HI })).message.content === SENTENCE);
await check("ollama chat, streamed", async () =>
  (await collect(await ollama.chat({ model: "tiny", messages: HI, stream: true }), (part) => part.message.content)) === SENTENCE);
await check("ollama chat, aborted", async () => {
  const stream = await ollama.chat({ model: "loop", messages: HI, stream: true, options: { num_predict: 3000 } });
  try {
    for await (const part of stream) stream.abort();
  } catch (error) {
    return error.name === "AbortError";
  }
  return "not aborted";
});
await check("ollama chat, schema", async () => {
  const format = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
  return typeof JSON.parse((await ollama.chat({ model: "tiny", messages: HI, format })).message.content).ok === "boolean";
});
await check("ollama chat, tools", async () => {
  const { message } = await ollama.chat({ model: "tool", messages: HI, tools: [TOOL], options: { temperature: 0 } });
  return message.tool_calls[0].function.arguments.city === "Rome";
});
await check("ollama chat, thinking", async () => {
  const { message } = await ollama.chat({ model: "think", messages: HI, think: true });
  return message.content === SENTENCE && message.thinking.trim() === "Let me see.";
});
await check("ollama chat, a picture", async () => {
  const blind = await ollama.chat({ model: "see", messages: HI });
  const seen = await ollama.chat({ model: "see", messages: [{ ...HI[0], images: [PICTURE] }] });
  return seen.prompt_eval_count === blind.prompt_eval_count + 4;
});
await check("ollama keep_alive loads and unloads", async () => {
  const load = await ollama.generate({ model: "tiny", prompt: "" });
  const unload = await ollama.generate({ model: "tiny", prompt: "", keep_alive: 0 });
  return load.done_reason === "load" && unload.done_reason === "unload";
});
await check("ollama generate, a prompt over the context", async () => {
  const error = await refusal(() => ollama.generate({ model: "tiny", prompt: "word ".repeat(900) }));
  return error.status_code === 400 && /the context holds 512/.test(error.message);
});
await check("ollama embed", async () => (await ollama.embed({ model: "tiny", input: ["a", "b"] })).embeddings.length === 2);
await check("ollama embeddings", async () => (await ollama.embeddings({ model: "tiny", prompt: "a" })).embedding.length > 0);
await check("ollama list", async () => (await ollama.list()).models.some((one) => one.name === "tiny:latest"));
await check("ollama show", async () => (await ollama.show({ model: "tool" })).capabilities.includes("tools"));
await check("ollama ps", async () => (await ollama.ps()).models.every((one) => one.context_length > 0));
await check("ollama version", async () => typeof (await ollama.version()).version === "string");
await check("ollama create, copy, delete", async () => {
  const made = await ollama.create({ model: "from-js", from: "tiny", system: "Be brief" });
  await ollama.copy({ source: "from-js", destination: "copied-js" });
  for (const model of ["from-js", "copied-js"]) await ollama.delete({ model });
  return made.status === "success";
});
await check("ollama, an unknown model", async () => {
  const error = await refusal(() => ollama.show({ model: "nope" }));
  return error.status_code === 404 && error.message === "model 'nope' not found";
});
await check("openai chat", async () =>
  (await openai.chat.completions.create({ model: "tiny", messages: HI })).choices[0].message.content === SENTENCE);
await check("openai chat, streamed", async () =>
  (await collect(await openai.chat.completions.create({ model: "tiny", messages: HI, stream: true }), (part) =>
    part.choices[0]?.delta?.content)) === SENTENCE);
await check("openai chat, tools", async () => {
  const answer = await openai.chat.completions.create({ model: "tool", messages: HI, tools: [TOOL], temperature: 0 });
  return answer.choices[0].message.tool_calls[0].function.name === "get_weather";
});
await check("openai completions", async () =>
  (await openai.completions.create({ model: "tiny", prompt: "Hi", max_tokens: 5 })).choices[0].text.length > 0);
await check("openai responses", async () =>
  (await openai.responses.create({ model: "tiny", input: "Hi" })).output_text === SENTENCE);
await check("openai embeddings", async () =>
  (await openai.embeddings.create({ model: "tiny", input: ["a", "b"] })).data.length === 2);
await check("openai models", async () => {
  const names = [];
  for await (const model of await openai.models.list()) names.push(model.id);
  return names.includes("tiny") && (await openai.models.retrieve("tiny")).id === "tiny";
});
await check("openai, an unknown model", async () => {
  const error = await refusal(() => openai.chat.completions.create({ model: "nope", messages: HI }));
  return error.status === 404 && /model 'nope' not found/.test(error.message);
});
process.exit(failed ? 1 : 0);
