"""The local LLM server. It has three kinds of processes: a keeper, which holds the port; a front, which
answers the API of Ollama and OpenAI; and a runner for each loaded model."""
