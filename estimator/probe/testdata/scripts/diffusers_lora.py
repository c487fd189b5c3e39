"""LoRA on the U-Net of Stable Diffusion 1.5, as diffusers' example trains it: bf16, latents and text states made up."""
import torch
import torch.nn.functional as F
from diffusers import DDPMScheduler, UNet2DConditionModel
from peft import LoraConfig

unet = UNet2DConditionModel(sample_size=64, block_out_channels=(320, 640, 1280, 1280), cross_attention_dim=768, attention_head_dim=8)
unet.requires_grad_(False)
unet.to("cuda", dtype=torch.bfloat16)
unet.add_adapter(LoraConfig(r=8, lora_alpha=8, init_lora_weights="gaussian", target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
for p in unet.parameters():
    if p.requires_grad:
        p.data = p.to(torch.float32)
trained = [p for p in unet.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-4)
noise_scheduler = DDPMScheduler(num_train_timesteps=1000)
unet.train()
for step in range(10):
    latents = torch.randn(4, 4, 64, 64, device="cuda", dtype=torch.bfloat16)
    text = torch.randn(4, 77, 768, device="cuda", dtype=torch.bfloat16)
    noise = torch.randn_like(latents)
    times = torch.randint(0, noise_scheduler.config.num_train_timesteps, (4,), device="cuda").long()
    noisy = noise_scheduler.add_noise(latents, noise, times)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = unet(noisy, times, text, return_dict=False)[0]
        loss = F.mse_loss(out.float(), noise.float(), reduction="mean")
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.detach().item())
