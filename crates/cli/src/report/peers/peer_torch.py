"""The article's network in PyTorch: channels last, as is fastest."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from main import Absent


class Network(nn.Module):
    def __init__(self, channels, side, classes):
        super().__init__()
        features = 100 * (side // 8) ** 2
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 5, padding=2) for a, b in ((channels, 20), (20, 50), (50, 100)))
        sizes = ((features, features // 2), (features // 2, features // 4), (features // 4, classes))
        self.linears = nn.ModuleList(nn.Linear(a, b) for a, b in sizes)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x):
        for conv in self.convs:
            x = F.max_pool2d(F.relu(conv(x)), 2)
        first, second, third = self.linears
        x = F.relu(self.dropout(first(x.flatten(1))))
        return F.log_softmax(self.dropout(third(self.dropout(second(x)))), 1)


class Peer:
    def __init__(self, device, task):
        self.version = torch.__version__
        if device == "cpu":
            self.device = "cpu"
        elif torch.cuda.is_available():
            self.device = "cuda"
        elif torch.backends.mps.is_available():
            self.device = "mps"
        else:
            raise Absent("this PyTorch sees no GPU")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = task["tf32"]
        torch.backends.cudnn.benchmark = True
        torch.manual_seed(task["seed"])
        model = Network(task["channels"], task["side"], task["classes"])
        self.model = model.to(self.device).to(memory_format=torch.channels_last)
        rate = task["learning_rate"]
        make = {
            "adam": lambda p: torch.optim.Adam(p, rate),
            "adamw": lambda p: torch.optim.AdamW(p, rate),
            "sgd": lambda p: torch.optim.SGD(p, rate, momentum=0.9),
        }
        self.optimizer = make[task["optimizer"]](self.model.parameters())

    def placed(self, x, y):
        x = torch.from_numpy(x).permute(0, 3, 1, 2).to(self.device, memory_format=torch.channels_last)
        return x, torch.from_numpy(y).long().to(self.device)

    def train(self, on):
        self.model.train(on)

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        scores = self.model(x)
        loss = F.nll_loss(scores, y)
        loss.backward()
        self.optimizer.step()
        return loss, (scores.argmax(1) == y).sum()

    @torch.inference_mode()
    def classes(self, x):
        return self.model(x).argmax(1)

    def read(self, array):
        return array.cpu().numpy()

    def wait(self, _):
        if self.device == "cuda":
            torch.cuda.synchronize()
        elif self.device == "mps":
            torch.mps.synchronize()
