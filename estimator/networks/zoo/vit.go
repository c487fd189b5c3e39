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
		c.entries = append(c.entries, entry{
			name: "vit_" + v.name, aliases: []string{"vit_" + v.name[:1] + "_16", "vit_" + v.name + "_patch16_224"},
			kind: models.Transformer, batch: 32, size: imageNet,
			build: func(g *graph, s settings) { g.vit(v.width, v.depth, v.heads, s) },
		})
	}
	return c
}

func (g *graph) vit(width, depth, heads int64, s settings) {
	const patch = 16
	g.photo(3, s)
	if s.image%patch != 0 {
		g.fail("the image has %d pixels, not a multiple of %d", s.image, patch)
	}
	x := g.conv("patch_embed.proj", data, window{out: width, kernel: patch, stride: patch, bias: true})
	tokens := g.shape(x)[1] * g.shape(x)[2]
	x = g.view("patch_embed.flatten", x, tokens, width)
	x = g.op(models.Concat, "concat", []int64{tokens + 1, width}, g.table("cls_token", 1, width), x)
	g.layers[x].Whole = false
	x = g.plus("pos_embed.add", x, g.table("pos_embed", tokens+1, width))
	for i := range depth {
		x = g.vitBlock(fmt.Sprintf("blocks.%d", i), x, heads)
	}
	x = g.view("class_token", g.layerNorm("norm", x), width)
	g.classify(g.linear("head", x, s.classes, true))
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
