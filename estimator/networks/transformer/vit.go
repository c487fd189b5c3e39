package transformer

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// VisionTransformers returns the networks of Dosovitskiy et al. 2021 with patches of 16
// pixels, as in timm: no dropout, joint query, key and value, fused attention.
func VisionTransformers() graph.Group {
	named := func(size string, width, depth, heads int64) graph.Network {
		e := graph.Classifier("vit_"+size, "head", func(g *graph.Graph) int { return vit(g, width, depth, heads) })
		e.Kind = models.Transformer
		return e.Called("vit_"+size[:1]+"_16", "vit_"+size+"_patch16_224")
	}
	return graph.Group{Name: "vit", Description: "transformers of image patches (ViT)", Entries: []graph.Network{
		named("tiny", 192, 12, 3), named("small", 384, 12, 6), named("base", 768, 12, 12), named("large", 1024, 24, 16),
	}}
}

func vit(g *graph.Graph, width, depth, heads int64) int {
	const patch = 16
	if side := g.Shape(graph.Data)[1]; side%patch != 0 {
		g.Fail("the image has %d pixels, not a multiple of %d", side, patch)
	}
	x := g.Conv("patch_embed.proj", graph.Data, graph.Window{Out: width, Kernel: patch, Stride: patch, Bias: true})
	tokens := g.Shape(x)[1] * g.Shape(x)[2]
	x = g.View("patch_embed.flatten", x, tokens, width)
	x = g.PerSample(g.Op(models.Concat, "concat", []int64{tokens + 1, width}, g.Table("cls_token", 1, width), x))
	x = g.Plus("pos_embed.add", x, g.Table("pos_embed", tokens+1, width))
	for i := range depth {
		x = vitBlock(g, fmt.Sprintf("blocks.%d", i), x, heads)
	}
	return g.View("class_token", g.LayerNorm("norm", x), width)
}

func vitBlock(g *graph.Graph, name string, in int, heads int64) int {
	defer g.StartBlock(name)()
	width := g.Last(in)
	qkv := g.Adapted("attn.qkv", g.LayerNorm("norm1", in), 3*width, true)
	q, k, v := g.ThreeWay(qkv, width)
	x := g.Linear("attn.proj", g.Attend("attn.sdpa", q, k, v, heads), width, true)
	in = g.Plus("add1", in, x)
	x = g.Unary(models.GELU, "mlp.act", g.Linear("mlp.fc1", g.LayerNorm("norm2", in), 4*width, true))
	return g.Plus("add2", in, g.Linear("mlp.fc2", x, width, true))
}
