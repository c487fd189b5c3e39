package diffusion

import "carma/estimator/networks/graph"

// Diffusions returns networks that make images from noise. Their structures follow the
// classes of diffusers 0.42.1; the sizes come from the models' configurations.
func Diffusions() graph.Group {
	sd15 := func() *UNet { return stableUNet(768, 8, 8, 8, 8) }
	c := graph.Group{Name: "diffusion", Description: "images from noise (Stable Diffusion, Flux)"}
	for _, e := range []struct {
		name    string
		aliases []string
		Diffusion
	}{
		{"sd15", []string{"stable_diffusion_v1_5"}, Diffusion{UNet: sd15(), VAE: stableVAE(4, true), Text: []*PromptEncoder{clipL}, Image: 512}},
		{"sd15_unet", nil, Diffusion{UNet: sd15(), Image: 512}},
		{"sd21", []string{"stable_diffusion_2_1"}, Diffusion{UNet: unet21(), VAE: stableVAE(4, true), Text: []*PromptEncoder{clipH}, Image: 768}},
		{"sd21_unet", nil, Diffusion{UNet: unet21(), Image: 768}},
		{"sdxl", []string{"stable_diffusion_xl"}, Diffusion{UNet: unetXL(), VAE: stableVAE(4, true), WideVAE: true, Text: []*PromptEncoder{clipL, clipG}, Image: 1024}},
		{"sdxl_unet", nil, Diffusion{UNet: unetXL(), Image: 1024}},
		{"sd3_medium", []string{"sd3"}, Diffusion{MMDiT: sd3Medium(), VAE: stableVAE(16, false), Image: 1024}},
		{"sd3_transformer", nil, Diffusion{MMDiT: sd3Medium(), Image: 1024}},
		{"flux_dev", []string{"flux", "flux1_dev"}, Diffusion{Flux: fluxDev(), VAE: stableVAE(16, false), Image: 1024}},
		{"flux_schnell", []string{"flux1_schnell"}, Diffusion{Flux: fluxSchnell(), VAE: stableVAE(16, false), Image: 1024}},
		{"sd35_medium", nil, Diffusion{MMDiT: sd35Medium(), VAE: stableVAE(16, false), Image: 1024}},
		{"sd35_large", nil, Diffusion{MMDiT: sd35Large(), VAE: stableVAE(16, false), Image: 1024}},
		{"flux_transformer", nil, Diffusion{Flux: fluxDev(), Image: 1024}},
	} {
		d := e.Diffusion
		d.Name = e.name
		c.Entries = append(c.Entries, d.entry(e.name, e.aliases...))
	}
	return c
}

// stableUNet returns the U-Net of Stable Diffusion 1 and 2.
func stableUNet(text int64, heads ...int64) *UNet {
	return &UNet{
		In: 4, Out: 4, Channels: []int64{320, 640, 1280, 1280}, Depth: 2, Text: text, Heads: heads, Transformers: []int64{1, 1, 1, 1},
		Down: []bool{true, true, true, false}, Up: []bool{false, true, true, true}, Middle: true,
	}
}

func unet21() *UNet {
	u := stableUNet(1024, 5, 10, 20, 20)
	u.Linear = true
	return u
}

func unetXL() *UNet {
	return &UNet{
		In: 4, Out: 4, Channels: []int64{320, 640, 1280}, Depth: 2, Text: 2048, Heads: []int64{5, 10, 20}, Transformers: []int64{1, 2, 10},
		Down: []bool{false, true, true}, Up: []bool{true, true, false}, Middle: true, Linear: true, Added: 2816,
	}
}

// Tokens of a prompt: CLIP's plus 256 of T5, and 512 of T5, as in the scripts.
const (
	SD3Tokens  = clipTokens + 256
	FluxTokens = 512
)

func sd3Medium() *MMDiT {
	return &MMDiT{Depth: 24, Heads: 24, Head: 64, Text: 4096, Pooled: 2048, Tokens: SD3Tokens, Positions: 192, Channels: 16}
}

func fluxDev() *Flux {
	return &Flux{Double: 19, Single: 38, Heads: 24, Head: 128, Text: 4096, Pooled: 768, Tokens: FluxTokens, Channels: 64, Guidance: true}
}

func fluxSchnell() *Flux {
	f := fluxDev()
	f.Guidance = false
	return f
}

func sd35Medium() *MMDiT {
	m := sd3Medium()
	m.Positions, m.Norm, m.Dual = 384, true, 13
	return m
}

func sd35Large() *MMDiT {
	m := sd3Medium()
	m.Depth, m.Heads, m.Norm = 38, 38, true
	return m
}
