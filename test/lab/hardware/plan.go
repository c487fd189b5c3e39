package main

import "strconv"

// training is a network at a batch size, with the arguments of carma_train.
type training struct {
	model, dataset string
	batch          int
	manner
}

// manner is the optimizer and precision of a training. The default is Adam, FP32.
type manner struct{ optimizer, precision string }

// flags are it as carma_train, its measure and carma estimate take them.
func (s manner) flags() []string {
	var out []string
	if s.optimizer != "" {
		out = append(out, "--optimizer", s.optimizer)
	}
	if s.precision != "" {
		out = append(out, "--precision", s.precision)
	}
	return out
}

var (
	plain    = manner{}
	amp      = manner{precision: "amp"}
	bf16     = manner{precision: "bf16"}
	adamw    = manner{optimizer: "adamw"}
	momentum = manner{optimizer: "sgd-momentum"}
)

// args returns the arguments of carma_train.
func (t training) args() []string {
	return append([]string{t.model, "--dataset", t.dataset, "--batch-size", strconv.Itoa(t.batch)}, t.flags()...)
}

// name is its name in the catalogue.
func (t training) name() string { return t.model + "/" + t.dataset }

// id is its name in files and tasks.
func (t training) id() string {
	id := t.model + "_" + t.dataset + "_bs" + strconv.Itoa(t.batch)
	for _, word := range []string{t.optimizer, t.precision} {
		if word != "" {
			id += "_" + word
		}
	}
	return id
}

// network is a network for the estimator, at several batch sizes.
type network struct {
	model, dataset string
	batches        []int
	manner
}

// all are its trainings, one for each batch size.
func (n network) all() []training {
	out := make([]training, 0, len(n.batches))
	for _, b := range n.batches {
		out = append(out, training{n.model, n.dataset, b, n.manner})
	}
	return out
}

// plan is the list of measurements.
type plan struct {
	networks []network
	others   []network // instead, with --networks others
	steps    int       // steps of each training for the estimator
	pairs    []training
	window   float64 // measured seconds of a pair
	warm     float64 // seconds before that, which do not count
	suite    []training
	length   int      // steps of each of the suite's tasks; as the remaining time allows if 0
	device   string   // --device of carma_train
	suspend  []string // arguments of suspend.py
	aside    asidePlan
	folders  []string // folders of the Python with PyTorch
}

// asidePlan is a training that carma suspends a number of times, and one beside it.
type asidePlan struct {
	training, other training
	steps, times    int
	// memory is the memory that they declare. If it is empty, they get the card alone, so
	// that MPS does not prevent suspending.
	memory string
}

// realPlan has 20 networks of all kinds; 9 tasks, of which each pair is measured
// (36); and 6 of these as the suite. The sizes allow several on a card at a time.
var realPlan = plan{
	device: "cuda",
	steps:  8,
	networks: []network{
		{"resnet18", "imagenet", []int{32, 64, 128}, plain},
		{"resnet34", "imagenet", []int{32, 64, 128}, plain},
		{"resnet50", "imagenet", []int{16, 32, 64}, plain},
		{"vgg16", "imagenet", []int{16, 32, 64}, plain},
		{"mobilenet_v2", "imagenet", []int{32, 64, 128}, plain},
		{"mobilenet_v3_small", "imagenet", []int{64, 128, 256}, plain},
		{"efficientnet_b0", "imagenet", []int{16, 32, 64}, plain},
		{"xception", "imagenet", []int{8, 16, 32}, plain},
		{"inception_v3", "imagenet", []int{16, 32, 64}, plain},
		{"unet", "voc", []int{2, 4, 8}, plain},
		{"dlrm", "criteo", []int{4096, 8192, 32768}, plain},
		{"bert_base", "wikitext2", []int{4, 8, 16}, plain},
		{"bert_large", "wikitext2", []int{2, 4, 8}, plain},
		{"xlnet_base", "wikitext2", []int{2, 4, 8}, plain},
		{"gpt2", "wikitext2", []int{1, 2, 4}, plain},
		{"gpt2_medium", "wikitext2", []int{1, 2, 4}, plain},
		{"mnist_cnn", "mnist", []int{64, 256, 1024}, plain},
		{"mlp_512x2", "mnist", []int{64, 256, 1024}, plain},
		{"mlp_1024x3", "mnist", []int{64, 256, 1024}, plain},
		{"mlp_4096x5", "mnist", []int{64, 256, 1024}, plain},
	},
	others:  otherNetworks,
	suspend: []string{"sizes=2,8,32", "training=resnet50,16,100"},
	aside:   asidePlan{training{"resnet50", "imagenet", 16, plain}, training{"mnist_cnn", "mnist", 64, plain}, 500, 10, ""},
	window:  2, warm: 0.3,
	pairs: []training{
		{"resnet50", "imagenet", 64, plain},
		{"vgg16", "imagenet", 32, plain},
		{"mobilenet_v2", "imagenet", 64, plain},
		{"efficientnet_b0", "imagenet", 64, plain},
		{"resnet18", "cifar100", 64, plain},
		{"xception", "imagenet", 32, plain},
		{"bert_base", "wikitext2", 16, plain},
		{"gpt2", "wikitext2", 4, plain},
		{"dlrm", "criteo", 8192, plain},
	},
	suite: []training{
		{"resnet50", "imagenet", 64, plain},
		{"bert_base", "wikitext2", 16, plain},
		{"mobilenet_v2", "imagenet", 64, plain},
		{"gpt2", "wikitext2", 4, plain},
		{"efficientnet_b0", "imagenet", 64, plain},
		{"resnet18", "cifar100", 64, plain},
	},
}

// otherNetworks are settings and networks to which no coefficient of the environments was
// fitted: mixed and half precision, other optimizers, other sizes.
var otherNetworks = []network{
	{"resnet50", "imagenet", []int{32, 128}, amp},
	{"vgg16", "imagenet", []int{64}, amp},
	{"mobilenet_v2", "imagenet", []int{128}, amp},
	{"efficientnet_b0", "imagenet", []int{64}, amp},
	{"inception_v3", "imagenet", []int{64}, amp},
	{"unet", "voc", []int{4, 8}, amp},
	{"bert_base", "wikitext2", []int{16, 32}, amp},
	{"bert_large", "wikitext2", []int{8}, amp},
	{"xlnet_base", "wikitext2", []int{4}, amp},
	{"gpt2", "wikitext2", []int{4, 8}, amp},
	{"gpt2_medium", "wikitext2", []int{4}, amp},
	{"resnet50", "imagenet", []int{64}, bf16},
	{"bert_base", "wikitext2", []int{16}, bf16},
	{"gpt2_medium", "wikitext2", []int{4}, bf16},
	{"gpt2_large", "wikitext2", []int{2}, bf16},
	{"resnet50", "imagenet", []int{96}, momentum},
	{"vgg16", "imagenet", []int{96}, momentum},
	{"bert_base", "wikitext2", []int{24}, adamw},
	{"gpt2", "wikitext2", []int{6}, adamw},
	{"maskrcnn", "coco", []int{2, 4}, plain},
	{"gpt2_large", "wikitext2", []int{1, 2}, plain},
	{"xlnet_large", "wikitext2", []int{2}, plain},
	{"resnet18", "cifar100", []int{128}, plain},
	{"vgg16", "cifar10", []int{128}, plain},
	{"mlp_2048x4", "mnist", []int{256}, plain},
}

// dryPlan takes the same steps with tiny shapes on the CPU. The suite's tasks are
// simulated ones, named after workloads.
var dryPlan = plan{
	device: "cpu",
	steps:  4,
	networks: []network{
		{"mnist_cnn", "mnist", []int{2, 4}, plain},
		{"resnet18", "cifar100", []int{2}, plain},
	},
	others: []network{
		{"mnist_cnn", "mnist", []int{2}, bf16},
		{"mnist_cnn", "mnist", []int{2}, momentum},
	},
	suspend: []string{"sizes=0.01", "training=mnist_cnn,8,24"},
	aside:   asidePlan{training{"resnet50", "imagenet", 64, plain}, training{"resnet18", "cifar100", 64, plain}, 0, 3, "20G"},
	window:  0.3, warm: 0.1,
	pairs: []training{
		{"mnist_cnn", "mnist", 4, plain},
		{"mlp_128x2", "mnist", 4, plain},
	},
	suite: []training{
		{"resnet50", "imagenet", 64, plain},
		{"mobilenet_v2", "imagenet", 64, plain},
		{"resnet18", "cifar100", 64, plain},
	},
}

// simulated is the workload that simtask simulates instead of a training.
var simulated = map[string]string{
	"resnet50":     "resnet50-imagenet-bs64",
	"mobilenet_v2": "mobilenet-v2-imagenet-bs64",
	"resnet18":     "resnet18-cifar100-bs64-20e",
}

// The methods below are for the report's template.

// ID returns the training's name in files and tasks.
func (t training) ID() string { return t.id() }

// Name returns the training's name in the catalogue.
func (t training) Name() string { return t.name() }

// Batch returns the batch size.
func (t training) Batch() int { return t.batch }

// Suffix ends the names of its file and profiles.
func (p *pairing) Suffix() string { return p.suffix() }

// Beyond returns the memory of the process beyond PyTorch's reserved memory, in bytes, or
// 0 if not measured.
func (t trained) Beyond() int64 {
	if t.Reserved == 0 || t.Process <= t.Reserved {
		return 0
	}
	return t.Process - t.Reserved
}

// Beyond returns the memory of a task as carma saw it, beyond its PyTorch's reserved memory, in
// bytes.
func (t taskRun) Beyond() int64 { return t.beyond() }
