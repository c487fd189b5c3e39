package zoo

import (
	"fmt"

	"carma/configs/models"
)

// visionTransformers are of Dosovitskiy et al. 2021 with patches of 16 pixels, as
// in timm: no dropout, joint query, key and value, fused attention.
func visionTransformers() group {
	c := group{name: "vit", description: "transformers of image patches (ViT)"}
	for _, v := range []struct {
		name                string
		width, depth, heads int64
	}{
		{"tiny", 192, 12, 3}, {"small", 384, 12, 6}, {"base", 768, 12, 12}, {"large", 1024, 24, 16},
	} {
		e := classifier("vit_"+v.name, "head", func(g *graph) int { return g.vit(v.width, v.depth, v.heads) })
		e.kind = models.Transformer
		c.entries = append(c.entries, e.called("vit_"+v.name[:1]+"_16", "vit_"+v.name+"_patch16_224"))
	}
	return c
}

func (g *graph) vit(width, depth, heads int64) int {
	const patch = 16
	if side := g.shape(data)[1]; side%patch != 0 {
		g.fail("the image has %d pixels, not a multiple of %d", side, patch)
	}
	x := g.conv("patch_embed.proj", data, window{out: width, kernel: patch, stride: patch, bias: true})
	tokens := g.shape(x)[1] * g.shape(x)[2]
	x = g.view("patch_embed.flatten", x, tokens, width)
	x = g.perSample(g.op(models.Concat, "concat", []int64{tokens + 1, width}, g.table("cls_token", 1, width), x))
	x = g.plus("pos_embed.add", x, g.table("pos_embed", tokens+1, width))
	for i := range depth {
		x = g.vitBlock(fmt.Sprintf("blocks.%d", i), x, heads)
	}
	return g.view("class_token", g.layerNorm("norm", x), width)
}

func (g *graph) vitBlock(name string, in int, heads int64) int {
	defer g.startBlock(name)()
	width := g.last(in)
	qkv := g.adapted("attn.qkv", g.layerNorm("norm1", in), 3*width, true)
	q, k, v := g.threeWay(qkv, width)
	x := g.linear("attn.proj", g.attend("attn.sdpa", q, k, v, heads), width, true)
	in = g.plus("add1", in, x)
	x = g.unary(models.GELU, "mlp.act", g.linear("mlp.fc1", g.layerNorm("norm2", in), 4*width, true))
	return g.plus("add2", in, g.linear("mlp.fc2", x, width, true))
}
