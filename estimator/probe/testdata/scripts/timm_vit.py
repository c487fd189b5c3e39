"""ViT-B/16 of timm with its data augmentation, AMP, an average of the weights."""
import timm
import timm.optim
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.utils import ModelEmaV2

model = timm.create_model("vit_base_patch16_224", num_classes=1000, drop_path_rate=0.1).cuda()
ema = ModelEmaV2(model, decay=0.9998)
optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
scaler = torch.amp.GradScaler("cuda")
mix = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=1000)
criterion = SoftTargetCrossEntropy()
model.train()
for step in range(20):
    images = torch.randn(64, 3, 224, 224, device="cuda")
    images, target = mix(images, torch.randint(0, 1000, (64,), device="cuda"))
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(images), target)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    ema.update(model)
    print(step, loss.item())
