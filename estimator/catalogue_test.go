package estimator

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"carma/internal/units"
)

const mib = units.MiB

var shelf = []Entry{
	{Name: "resnet3", Model: "resnet50", Dataset: "imagenet", Batch: 128, GPUs: 1, Memory: 13_000 * mib},
	{Name: "resnet", Model: "resnet50", Dataset: "imagenet", Batch: 32, GPUs: 1, Memory: 4_000 * mib},
	{Name: "resnet2", Aliases: []string{"resnet-medium"}, Model: "resnet50", Dataset: "imagenet", Batch: 64, GPUs: 1, Memory: 7_000 * mib},
	{Name: "eff", Model: "efficientnet_b0", Dataset: "imagenet", Batch: 32, GPUs: 1, Memory: 5_000 * mib},
	{Name: "eff_cifar", Model: "efficientnet_b0", Dataset: "cifar100", Batch: 32, GPUs: 1, Memory: 1_000 * mib},
	{Name: "eff_cifar_2", Model: "efficientnet_b0", Dataset: "cifar100", Batch: 64, GPUs: 1, Memory: 1_200 * mib},
	{Name: "gpt2_1", Model: "gpt2", Dataset: "wikitext2", Batch: 8, GPUs: 1, Memory: 30_000 * mib},
	{Name: "gpt2_2", Model: "gpt2", Dataset: "wikitext2", Batch: 8, GPUs: 2, Memory: 20_000 * mib},
	{Name: "unet", Model: "unet", Dataset: "voc", Batch: 8, GPUs: 1, Memory: 9_000 * mib},
	{Name: "resnet2@v1", Memory: 8_000 * mib},
	{Name: "lost", Model: "lost", Batch: 8, GPUs: 1},
}

func TestEstimate(t *testing.T) {
	c := NewCatalogue(shelf)
	tests := []struct {
		name   string
		q      Query
		point  units.Bytes // MiB, or 0 for a whole GPU
		upper  units.Bytes
		method string
		detail string
	}{
		{"declared", Query{Declared: 100 * mib}, 100, 100, Declared, "100 MiB per GPU as declared with --mem"},
		{"declared wins over a model", Query{Declared: 100 * mib, Model: "resnet50", Batch: 32}, 100, 100, Declared, "declared"},
		{"declared wins over a wrong model", Query{Declared: 100 * mib, Model: "nonsense"}, 100, 100, Declared, "declared"},
		{"nothing", Query{}, 0, 0, WholeGPUs, "--mem or --est-model lets it share"},
		{"batch alone", Query{Batch: 32}, 0, 0, WholeGPUs, "nothing is known"},
		{"workload", Query{Model: "resnet2"}, 7000, 7140, Measured, "workload resnet2: 6.8 GiB measured, 7.0 GiB booked"},
		{"workload in other letters", Query{Model: "ResNet_2"}, 7000, 7140, Measured, "workload resnet2"},
		{"alias", Query{Model: "resnet-medium"}, 7000, 7140, Measured, "workload resnet2"},
		{"workload with its own batch", Query{Model: "resnet2", Batch: 64}, 7000, 7140, Measured, "workload resnet2"},
		{"workload with another batch", Query{Model: "resnet2", Batch: 128}, 13000, 13260, Measured, "resnet50 at batch size 128 (resnet3)"},
		{"workload keeps its data set", Query{Model: "eff_cifar", Batch: 64}, 1200, 1264, Measured, "(eff_cifar_2)"},
		{"workload beyond its data set", Query{Model: "eff_cifar", Batch: 65}, 0, 0, WholeGPUs, "up to batch size 64 only"},
		{"workload of a campaign", Query{Model: "resnet2@v1", Batch: 32}, 8000, 8160, Measured, "workload resnet2@v1"},
		{"model at a measured batch", Query{Model: "resnet50", Batch: 64}, 7000, 7140, Measured, "resnet50 at batch size 64 (resnet2)"},
		{"between two batches", Query{Model: "resnet50", Batch: 65}, 13000, 13260, Measured, "batch size 128, the next measured above 65"},
		{"below the smallest", Query{Model: "resnet50", Batch: 1}, 4000, 4080, Measured, "batch size 32, the next measured above 1"},
		{"beyond the largest", Query{Model: "resnet50", Batch: 129}, 0, 0, WholeGPUs, "up to batch size 128 only"},
		{"no batch", Query{Model: "resnet50"}, 13000, 13260, Measured, "without a batch size, so its largest measured: resnet3"},
		{"largest over data sets", Query{Model: "efficientnet_b0", Batch: 32}, 5000, 5100, Measured, "(eff)"},
		{"named data set", Query{Model: "efficientnet_b0/cifar100", Batch: 32}, 1000, 1064, Measured, "(eff_cifar)"},
		{"named data set with dashes", Query{Model: "EfficientNet-B0-CIFAR100"}, 1200, 1264, Measured, "largest measured: eff_cifar_2"},
		{"same number of GPUs", Query{Model: "gpt2", Batch: 8, GPUs: 2}, 20000, 20400, Measured, "(gpt2_2) on 2 GPUs"},
		{"one GPU", Query{Model: "gpt2", Batch: 8, GPUs: 1}, 30000, 30600, Measured, "(gpt2_1)"},
		{"a number of GPUs not measured", Query{Model: "gpt2", Batch: 8, GPUs: 4}, 30000, 30600, Measured, "(gpt2_1)"},
		{"workload and model of one name", Query{Model: "unet"}, 9000, 9180, Measured, "workload unet"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := c.Estimate(tt.q)
			if err != nil {
				t.Fatal(err)
			}
			if e.Point != tt.point*mib || e.Memory != tt.upper*mib || e.WholeGPU != (tt.point == 0) || e.Method != tt.method {
				t.Errorf("got %+v", e)
			}
			if !strings.Contains(e.Detail, tt.detail) {
				t.Errorf("detail %q does not say %q", e.Detail, tt.detail)
			}
		})
	}
}

// The upper bound is at least 64 MiB above the point.
func TestMargin(t *testing.T) {
	c := NewCatalogue([]Entry{{Name: "tiny", Memory: 1}, {Name: "huge", Memory: 80 * units.GiB}})
	for _, name := range []string{"tiny", "huge"} {
		e, err := c.Estimate(Query{Model: name, Batch: 3})
		if err != nil || e.Memory < e.Point+64*mib || e.Memory < e.Point.Scale(1.02) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

func TestUnknownModel(t *testing.T) {
	c := NewCatalogue(shelf)
	tests := []struct{ model, want string }{
		{"resnet5", `unknown est-model "resnet5"; nearest are resnet, resnet2, resnet3, resnet50`},
		{"efficient", `unknown est-model "efficient"; did you mean efficientnet_b0?`},
		{"gtp2", `unknown est-model "gtp2"; nearest are gpt2, gpt2_1, gpt2_2`},
		{"unett", `unknown est-model "unett"; did you mean unet?`},
		{strings.Repeat("resnet", 1000), `unknown est-model "resnetresnet`},
		{"llama", `unknown est-model "llama"; give the memory with --mem, for example --mem 12G`},
		{"lost", `unknown est-model "lost"; give the memory`}, // no measured value
		{"-", `unknown est-model "-"; give the memory`},
	}
	for _, tt := range tests {
		_, err := c.Estimate(Query{Model: tt.model})
		var unknown *UnknownModelError
		if !errors.As(err, &unknown) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.model, err, tt.want)
		}
	}
}

// The order of the entries does not change any answer.
func TestOrderDoesNotMatter(t *testing.T) {
	back := slices.Clone(shelf)
	slices.Reverse(back)
	a, b := NewCatalogue(shelf), NewCatalogue(back)
	if !slices.Equal(a.Names(), b.Names()) {
		t.Fatalf("%v, %v", a.Names(), b.Names())
	}
	for _, name := range a.Names() {
		for batch := range 140 {
			q := Query{Model: name, Batch: batch, GPUs: batch % 3}
			x, errX := a.Estimate(q)
			y, errY := b.Estimate(q)
			if x != y || errX != nil || errY != nil {
				t.Fatalf("%+v: %+v %v, %+v %v", q, x, errX, y, errY)
			}
		}
	}
}

func FuzzEstimate(f *testing.F) {
	f.Add("resnet50", 64, 1, int64(0))
	f.Add("", 0, 0, int64(0))
	f.Add("é/-", -1, -1, int64(-5))
	c := NewCatalogue(shelf)
	f.Fuzz(func(t *testing.T, model string, batch, gpus int, declared int64) {
		e, err := c.Estimate(Query{Model: model, Batch: batch, GPUs: gpus, Declared: units.Bytes(declared)})
		if err != nil {
			return
		}
		if e.WholeGPU != (e.Memory == 0) || e.Memory < e.Point || e.Detail == "" || e.Method == "" {
			t.Errorf("%+v", e)
		}
	})
}
