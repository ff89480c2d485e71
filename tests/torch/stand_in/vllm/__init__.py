"""A stand-in of vLLM for tests of col.vllm: where col meets it, and nothing else. As of vLLM 0.32 and 0.33."""
