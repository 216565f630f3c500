"""Batched generation with padding on the left, and a server that streams tokens as they come."""

import http.client
import json
import queue
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import List, Optional

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_map

VOCAB = [chr(c) for c in range(32, 127)] + ["<eos>"]
EOS = len(VOCAB) - 1


class Tokenizer:
    def encode(self, text: str) -> List[int]:
        return [ord(c) - 32 for c in text if 32 <= ord(c) < 127]

    def decode(self, tokens) -> str:
        return "".join(VOCAB[t] for t in tokens if t != EOS)


class Attention(nn.Module):
    def __init__(self, dims: int, num_heads: int, kv_heads: int):
        super().__init__()
        self.num_heads, self.kv_heads, self.head_dim = num_heads, kv_heads, dims // num_heads
        self.qkv = nn.Linear(dims, (num_heads + 2 * kv_heads) * self.head_dim, bias=True)
        self.out = nn.Linear(dims, dims, bias=False)
        self.rope = nn.RoPE(self.head_dim)

    def __call__(self, x, mask, cache):
        B, L, _ = x.shape
        qkv = self.qkv(x).reshape(B, L, -1, self.head_dim).swapaxes(1, 2)
        q, k, v = mx.split(qkv, [self.num_heads, self.num_heads + self.kv_heads], axis=1)
        # Each row has its own offset, for the padding is on the left.
        q = self.rope(q, offset=cache.offset)
        k = self.rope(k, offset=cache.offset)
        k, v = cache.update_and_fetch(k, v)
        y = mx.fast.scaled_dot_product_attention(q, k, v, scale=self.head_dim**-0.5, mask=mask)
        return self.out(y.swapaxes(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, dims, num_heads, kv_heads):
        super().__init__()
        self.attention = Attention(dims, num_heads, kv_heads)
        self.mlp = nn.Sequential(nn.Linear(dims, 4 * dims), nn.GELU(approx="fast"), nn.Linear(4 * dims, dims))
        self.ln1, self.ln2 = nn.LayerNorm(dims), nn.LayerNorm(dims)

    def __call__(self, x, mask, cache):
        x = x + self.attention(self.ln1(x), mask, cache)
        return x + self.mlp(self.ln2(x))


class Model(nn.Module):
    def __init__(self, dims=48, num_heads=4, kv_heads=2, num_layers=2):
        super().__init__()
        self.embed = nn.Embedding(len(VOCAB), dims)
        self.layers = [Block(dims, num_heads, kv_heads) for _ in range(num_layers)]
        self.norm = nn.LayerNorm(dims)
        self.head = nn.Linear(dims, len(VOCAB))

    def __call__(self, tokens, cache):
        x = self.embed(tokens)
        mask = cache[0].make_mask(tokens.shape[1])
        for layer, c in zip(self.layers, cache):
            x = layer(x, mask, c)
        return self.head(self.norm(x))


class BatchKVCache:
    step = 8

    def __init__(self, left_padding: List[int]):
        self.keys = self.values = None
        self.left_padding = mx.array(left_padding)
        self.offset = mx.array([-l for l in left_padding])
        self._idx = 0

    def update_and_fetch(self, keys, values):
        prev = self._idx
        if self.keys is None or prev + keys.shape[2] > self.keys.shape[2]:
            B, H, L, D = keys.shape
            n = (self.step + L - 1) // self.step * self.step
            new = [mx.zeros((B, H, n, D), keys.dtype) for _ in range(2)]
            if self.keys is not None:
                old = (self.keys[..., :prev, :], self.values[..., :prev, :])
                new = [mx.concatenate([a, b], axis=2) for a, b in zip(old, new)]
            self.keys, self.values = new
        self.offset += keys.shape[2]
        self._idx += keys.shape[2]
        self.keys[..., prev : self._idx, :] = keys
        self.values[..., prev : self._idx, :] = values
        return self.keys[..., : self._idx, :], self.values[..., : self._idx, :]

    def make_mask(self, N: int):
        rinds = mx.arange(self._idx + N)
        linds = mx.arange(self._idx, self._idx + N)[:, None] if self._idx else rinds[:, None]
        mask = linds >= rinds[None]
        return mask & (mx.expand_dims(self.left_padding, (1, 2, 3)) <= rinds)

    def filter(self, batch_indices):
        """Keeps these rows, and takes away padding that none of them needs."""
        self.keys, self.values = self.keys[batch_indices], self.values[batch_indices]
        self.offset = self.offset[batch_indices]
        self.left_padding = self.left_padding[batch_indices]
        least = self.left_padding.min().item()
        if least > 0:
            self.keys, self.values = self.keys[..., least:, :], self.values[..., least:, :]
            self._idx -= least
            self.left_padding -= least

    def extend(self, other: "BatchKVCache"):
        """Appends the rows of another batch, aligned on the right."""
        most = max(self._idx, other._idx)

        def padded(c):
            left = most - c._idx
            widths = [(0, 0), (0, 0), (left, 0), (0, 0)]
            k, v = (mx.pad(x[..., : c._idx, :], widths) for x in (c.keys, c.values))
            return k, v, c.offset, c.left_padding + left

        parts = zip(padded(self), padded(other))
        self.keys, self.values, self.offset, self.left_padding = (mx.concatenate(p) for p in parts)
        self._idx = most

    @property
    def state(self):
        return self.keys, self.values, self.offset, self.left_padding


@dataclass
class Request:
    uid: int
    prompt: List[int]
    max_tokens: int
    temperature: float = 0.0
    key: Optional[mx.array] = None
    tokens: List[int] = field(default_factory=list)
    sink: Optional[queue.Queue] = None


class BatchGenerator:
    """Generates for several requests at once; new ones join between two steps."""

    def __init__(self, model, max_batch=4):
        self.model, self.max_batch = model, max_batch
        self.waiting: List[Request] = []
        self.active: List[Request] = []
        self.y = self.cache = None
        self.steps = 0

    def insert(self, request):
        self.waiting.append(request)

    def _sample(self, logits, requests):
        logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
        if all(r.temperature == 0 for r in requests):
            return mx.argmax(logprobs, axis=-1)
        rows = []
        for row, r in zip(logprobs, requests):
            if r.temperature == 0:
                rows.append(mx.argmax(row))
            else:
                r.key, key = mx.random.split(r.key)
                rows.append(mx.random.categorical(row / r.temperature, key=key).astype(mx.uint32))
        return mx.stack(rows)

    def _prefill(self, requests):
        longest = max(len(r.prompt) for r in requests)
        padding = [longest - len(r.prompt) for r in requests]
        inputs = mx.array([[0] * p + r.prompt for p, r in zip(padding, requests)])
        cache = [BatchKVCache(padding) for _ in self.model.layers]
        logits = self.model(inputs, cache)
        y = self._sample(logits[:, -1, :], requests)
        mx.eval(y, [c.state for c in cache])
        return y, cache

    def next(self):
        """One step: the new tokens as pairs of a request and a token."""
        room = self.max_batch - len(self.active)
        if room and self.waiting:
            new, self.waiting = self.waiting[:room], self.waiting[room:]
            y, cache = self._prefill(new)
            if self.active:
                self.y = mx.concatenate([self.y, y])
                for mine, other in zip(self.cache, cache):
                    mine.extend(other)
            else:
                self.y, self.cache = y, cache
            self.active += new
        if not self.active:
            return []
        y, self.steps = self.y, self.steps + 1
        logits = self.model(y[:, None], self.cache)
        self.y = self._sample(logits[:, -1], self.active)
        mx.async_eval(self.y)
        out, keep = [], []
        for i, (r, token) in enumerate(zip(self.active, y.tolist())):
            r.tokens.append(token)
            done = token == EOS or len(r.tokens) >= r.max_tokens
            out.append((r, token, "stop" if token == EOS else "length" if done else None))
            if not done:
                keep.append(i)
        if len(keep) < len(self.active):
            self.active = [self.active[i] for i in keep]
            if keep:
                keep = mx.array(keep, mx.int32)
                self.y = self.y[keep]
                for c in self.cache:
                    c.filter(keep)
            else:
                self.y = self.cache = None
        return out

    def run(self):
        while self.waiting or self.active:
            yield from self.next()


class Engine(threading.Thread):
    """The thread that computes; handlers of requests wait at their queues."""

    def __init__(self, make_model):
        super().__init__(daemon=True)
        self.requests, self.make_model = queue.Queue(), make_model

    def run(self):
        generator = BatchGenerator(self.make_model())
        while True:
            try:
                request = self.requests.get(block=not (generator.waiting or generator.active))
                generator.insert(request)
                continue
            except queue.Empty:
                pass
            for request, token, reason in generator.next():
                request.sink.put((token, reason))


def handler(engine, tokenizer):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def _json(self, value, status=200):
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            if self.path != "/v1/models":
                return self._json({"error": "not found"}, 404)
            self._json({"object": "list", "data": [{"id": "small"}]})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = tokenizer.encode(body["prompt"])
            request = Request(0, prompt, body.get("max_tokens", 8), sink=queue.Queue())
            engine.requests.put(request)
            if not body.get("stream"):
                tokens, reason = [], None
                while reason is None:
                    token, reason = request.sink.get()
                    tokens.append(token)
                choice = {"text": tokenizer.decode(tokens), "finish_reason": reason}
                usage = {"prompt_tokens": len(prompt), "completion_tokens": len(tokens)}
                return self._json({"choices": [choice], "usage": usage})
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            reason = None
            while reason is None:
                token, reason = request.sink.get()
                chunk = {"text": tokenizer.decode([token]), "finish_reason": reason}
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.flush()
            self.wfile.write(b"data: [DONE]\n\n")
            self.close_connection = True

    return Handler


def make_model():
    mx.random.seed(42)
    model = Model()
    model.update(tree_map(lambda p: 4 * p if p.ndim == 2 else p, model.parameters()))
    model.eval()
    mx.eval(model.parameters())
    return model


def ask(port, **body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/v1/completions", json.dumps(body))
    response = connection.getresponse()
    return response.status, response.read().decode()


PROMPTS = ["Once upon a time", "A", "The answer is", "Hello, world! How are you", "x = 3; y", "?"]


def main():
    model, tokenizer = make_model(), Tokenizer()
    print("parameters", sum(x.size for _, x in tree_flatten(model)))

    def batch(prompts, limits, **options):
        generator = BatchGenerator(model)
        requests = [
            Request(i, tokenizer.encode(p), n, key=mx.random.key(i), **options)
            for i, (p, n) in enumerate(zip(prompts, limits))
        ]
        for r in requests:
            generator.insert(r)
        order = [r.uid for r, _, reason in generator.run() if reason]
        return [r.tokens for r in requests], order, generator.steps

    limits = [6, 12, 9, 4, 10, 7]
    together, order, steps = batch(PROMPTS, limits)
    alone = [batch([p], [n])[0][0] for p, n in zip(PROMPTS, limits)]
    for p, tokens in zip(PROMPTS, together):
        print(repr(p), tokens)
    print("order", order, "steps", steps, "alone", alone == together)
    sampled, order, _ = batch(PROMPTS[:3], [8, 8, 8], temperature=0.9)
    print("sampled", sampled, order)

    cache = BatchKVCache([2, 0, 5])
    k = mx.arange(3 * 2 * 6 * 4, dtype=mx.float32).reshape(3, 2, 6, 4)
    cache.update_and_fetch(k, -k)
    print("mask", cache.make_mask(2).astype(mx.int32).tolist())
    cache.filter(mx.array([0, 2]))
    print("filtered", cache.keys.shape, cache.offset.tolist(), cache.left_padding.tolist(), cache._idx)

    engine = Engine(make_model)
    engine.start()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(engine, tokenizer))
    port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    answers = {}

    def client(i):
        answers[i] = ask(port, prompt=PROMPTS[i], max_tokens=limits[i], stream=i % 2 == 0)

    clients = [threading.Thread(target=client, args=(i,)) for i in range(len(PROMPTS))]
    [c.start() for c in clients]
    [c.join() for c in clients]
    for i in range(len(PROMPTS)):
        print("answer", i, answers[i])
    streamed = [json.loads(l[6:])["text"] for l in answers[0][1].split("\n\n")[:-2]]
    print("same as alone", "".join(streamed) == tokenizer.decode(alone[0]))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/v1/models")
    print(connection.getresponse().read().decode())
    connection.request("GET", "/nothing")
    response = connection.getresponse()
    print(response.status, response.read().decode())
    connection.close()
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()
