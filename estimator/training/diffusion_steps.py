"""Peak memory of training steps of diffusers' models, without a GPU and without weights.

    python diffusion_steps.py ../step/testdata/diffusion.csv

fills the column peak_bytes of rows that lack it; the table's head has the versions. standin.py says what is counted.
A step is that of diffusers' training scripts: the frozen VAE encodes the images, the frozen text encoders the
prompts (where the row has them), the network predicts the noise under autocast, the loss is the mean square in 32
bits. With 16-bit mixed precision what is frozen has 16 bits; adapters have 32.
"""
import sys

import standin

UNETS = {
    "sd15": dict(sample_size=64, cross_attention_dim=768),
    "sd21": dict(sample_size=96, cross_attention_dim=1024, attention_head_dim=[5, 10, 20, 20], use_linear_projection=True),
    "sdxl": dict(
        sample_size=128, block_out_channels=(320, 640, 1280), cross_attention_dim=2048, attention_head_dim=[5, 10, 20],
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"), use_linear_projection=True,
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"), transformer_layers_per_block=[1, 2, 10],
        addition_embed_type="text_time", addition_time_embed_dim=256, projection_class_embeddings_input_dim=2816),
}
VAE = dict(
    block_out_channels=(128, 256, 512, 512), down_block_types=("DownEncoderBlock2D",) * 4,
    up_block_types=("UpDecoderBlock2D",) * 4, layers_per_block=2)
CLIP_L = dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, projection_dim=768)
CLIP_H = dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=23, num_attention_heads=16, hidden_act="gelu", projection_dim=512)
CLIP_G = dict(hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=20, hidden_act="gelu", projection_dim=1280)
# Layers with adapters, as the scripts have them.
ATTENTION = ["to_q", "to_k", "to_v", "to_out.0"]
JOINT = ATTENTION + ["add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"]
TARGETS = {"sd3": JOINT, "flux": JOINT + ["net.0.proj", "net.2"]}


class Job:
    def __init__(self, row):
        import torch

        self.row, self.torch = row, torch
        self.name, _, part = row["model"].partition("_")
        self.alone = part in ("unet", "transformer") or row["model"].endswith("transformer")
        self.batch, self.image, self.lora = int(row["batch"]), int(row["image"]), int(row["lora"] or 0)
        self.precision = row["precision"]
        self.half = {"fp16": torch.float16, "amp": torch.bfloat16, "bf16": torch.bfloat16}.get(self.precision)

    def made(self, make, dtype):
        torch = self.torch
        torch.set_default_dtype(dtype or torch.float32)
        module = make()
        torch.set_default_dtype(torch.float32)
        for p in module.parameters():
            p.data = p.data if p.dtype == (dtype or torch.float32) else torch.empty_like(p.data, dtype=dtype)
        return module

    def network(self):
        import diffusers

        if self.name in UNETS:
            return diffusers.UNet2DConditionModel(**UNETS[self.name])
        if self.name == "sd3":
            return diffusers.SD3Transformer2DModel(
                num_layers=24, num_attention_heads=24, caption_projection_dim=1536, pos_embed_max_size=192)
        return diffusers.FluxTransformer2DModel(guidance_embeds=True)

    def frozen(self):
        """The VAE, and the text encoders of the U-Nets."""
        import diffusers
        import transformers

        if self.alone:
            return None, []
        latents = 4 if self.name in UNETS else 16
        more = {} if self.name in UNETS else dict(use_quant_conv=False, use_post_quant_conv=False)
        wide = self.name == "sdxl"  # the script leaves SDXL's VAE in 32 bits
        vae = self.made(lambda: diffusers.AutoencoderKL(latent_channels=latents, **VAE, **more), None if wide else self.half)
        text = {"sd15": [CLIP_L], "sd21": [CLIP_H], "sdxl": [CLIP_L, CLIP_G]}.get(self.name, [])
        make = {768: transformers.CLIPTextModel, 1024: transformers.CLIPTextModel, 1280: transformers.CLIPTextModelWithProjection}
        encoders = [self.made(lambda c=c: make[c["hidden_size"]](transformers.CLIPTextConfig(vocab_size=49408, **c)), self.half) for c in text]
        for m in (vae, *encoders):
            m.requires_grad_(False)
        return vae.eval(), [e.eval() for e in encoders]

    def trained(self):
        whole = self.precision in ("bf16", "fp16")  # 16-bit weights
        network = self.made(self.network, self.half if self.lora or whole else None)
        network.train()
        if self.lora:
            import peft

            network.requires_grad_(False)
            targets = self.row["targets"].split("|") if self.row["targets"] else TARGETS.get(self.name, ATTENTION)
            # Adapters have 32 bits, as they are made; fake tensors cannot be moved.
            self.torch.nn.Module.to = lambda module, *a, **k: module
            network.add_adapter(peft.LoraConfig(r=self.lora, lora_alpha=self.lora, target_modules=targets))
            assert any(p.requires_grad for p in network.parameters())
        if self.row["checkpointing"] == "true":
            network.enable_gradient_checkpointing()
        return network

    def latents(self, vae):
        torch, side = self.torch, self.image // 8
        channels = 4 if self.name in UNETS else 16
        if vae is None:
            return torch.empty(self.batch, channels, side, side, dtype=self.half)
        pixels = torch.empty(self.batch, 3, self.image, self.image, dtype=vae.dtype)
        with torch.no_grad():
            return (vae.encode(pixels).latent_dist.sample() * 0.18).to(self.half or torch.float32)

    def prompts(self, encoders):
        torch, dtype = self.torch, self.half or self.torch.float32
        if self.name in UNETS:
            width = UNETS[self.name]["cross_attention_dim"]
            if not encoders:
                return torch.empty(self.batch, 77, width, dtype=dtype), torch.empty(self.batch, 1280, dtype=dtype)
            with torch.no_grad():
                out = [e(torch.zeros(self.batch, 77, dtype=torch.int64), output_hidden_states=True) for e in encoders]
            if self.name != "sdxl":
                return out[0][0], None
            return torch.cat([o.hidden_states[-2] for o in out], dim=-1), out[1][0]
        tokens, pooled = (333, 2048) if self.name == "sd3" else (512, 768)
        return torch.empty(self.batch, tokens, 4096, dtype=dtype), torch.empty(self.batch, pooled, dtype=dtype)

    def predict(self, network, noisy, times, text, pooled):
        torch = self.torch
        if self.name == "sdxl":
            added = {"time_ids": torch.empty(self.batch, 6, dtype=noisy.dtype), "text_embeds": pooled}
            return network(noisy, times, text, added_cond_kwargs=added, return_dict=False)[0], noisy
        if self.name in UNETS:
            return network(noisy, times, text, return_dict=False)[0], noisy
        if self.name == "sd3":
            return network(hidden_states=noisy, timestep=times, encoder_hidden_states=text, pooled_projections=pooled, return_dict=False)[0], noisy
        side = self.image // 16
        packed = noisy.view(self.batch, 16, side, 2, side, 2).permute(0, 2, 4, 1, 3, 5).reshape(self.batch, side * side, 64)
        out = network(
            hidden_states=packed, timestep=times, guidance=torch.empty(self.batch), pooled_projections=pooled,
            encoder_hidden_states=text, txt_ids=torch.empty(512, 3), img_ids=torch.empty(side * side, 3), return_dict=False)[0]
        return out, packed

    def step(self, network, vae, encoders):
        torch = self.torch
        latents = self.latents(vae)
        noise = torch.empty_like(latents)
        noisy = latents + noise
        text, pooled = self.prompts(encoders)
        auto = self.half is not None and (self.precision == "amp" or self.lora > 0)
        times = torch.zeros(self.batch, dtype=torch.int64)
        with torch.autocast("cuda", dtype=self.half or torch.bfloat16, enabled=auto):
            out, target = self.predict(network, noisy, times, text, pooled)
        loss = torch.nn.functional.mse_loss(out.float(), target.float())
        loss.backward()

    def peak(self):
        torch = self.torch
        with standin.gpu() as memory:
            network = self.trained()
            vae, encoders = self.frozen()
            standin.count(memory, *[m for m in (network, vae, *encoders) if m is not None])
            trained = [p for p in network.parameters() if p.requires_grad]
            print(sum(p.numel() for p in network.parameters()), sum(p.numel() for p in trained), file=sys.stderr)
            optimizer = torch.optim.AdamW(trained, foreach=True)  # the default on a GPU
            for _ in range(2):
                self.step(network, vae, encoders)
                optimizer.step()
                optimizer.zero_grad()
        return memory.peak


if __name__ == "__main__":
    standin.fill(sys.argv[1], lambda row: Job(row).peak())
