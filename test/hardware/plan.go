package main

import "strconv"

// training is a network at a batch size, with the arguments of carma_train.
type training struct {
	model, dataset string
	batch          int
	more           []string // more arguments of carma_train
}

// args are the arguments of carma_train.
func (t training) args() []string {
	return append([]string{t.model, "--dataset", t.dataset, "--batch-size", strconv.Itoa(t.batch)}, t.more...)
}

// name is its name in the catalogue.
func (t training) name() string { return t.model + "/" + t.dataset }

// id is its name in files and tasks.
func (t training) id() string { return t.model + "_" + t.dataset + "_bs" + strconv.Itoa(t.batch) }

// network is a network for the estimator, at several batch sizes.
type network struct {
	model, dataset string
	batches        []int
	more           []string
}

// plan is the list of measurements.
type plan struct {
	networks []network
	steps    int // steps of each training for the estimator
	pairs    []training
	window   float64 // measured seconds of a pair
	warm     float64 // seconds before that, which do not count
	suite    []training
	length   int      // steps of each of the suite's tasks; 0: as the remaining time allows
	device   string   // --device of carma_train
	suspend  []string // arguments of suspend.py
	aside    asidePlan
	folders  []string // folders of the Python with PyTorch
}

// asidePlan is a training that carma suspends so many times, and one beside it.
type asidePlan struct {
	training, other training
	steps, times    int
	// memory is what they declare; empty: they get the card alone, so that MPS is no
	// obstacle.
	memory string
}

// realPlan has 20 networks of all kinds; 9 tasks, of which each pair is measured
// (36); and 6 of these as the suite. The sizes allow several on a card at a time.
var realPlan = plan{
	device: "cuda",
	steps:  8,
	networks: []network{
		{"resnet18", "imagenet", []int{32, 64, 128}, nil},
		{"resnet34", "imagenet", []int{32, 64, 128}, nil},
		{"resnet50", "imagenet", []int{16, 32, 64}, nil},
		{"vgg16", "imagenet", []int{16, 32, 64}, nil},
		{"mobilenet_v2", "imagenet", []int{32, 64, 128}, nil},
		{"mobilenet_v3_small", "imagenet", []int{64, 128, 256}, nil},
		{"efficientnet_b0", "imagenet", []int{16, 32, 64}, nil},
		{"xception", "imagenet", []int{8, 16, 32}, nil},
		{"inception_v3", "imagenet", []int{16, 32, 64}, nil},
		{"unet", "voc", []int{2, 4, 8}, nil},
		{"dlrm", "criteo", []int{4096, 8192, 32768}, nil},
		{"bert_base", "wikitext2", []int{4, 8, 16}, nil},
		{"bert_large", "wikitext2", []int{2, 4, 8}, nil},
		{"xlnet_base", "wikitext2", []int{2, 4, 8}, nil},
		{"gpt2", "wikitext2", []int{1, 2, 4}, nil},
		{"gpt2_medium", "wikitext2", []int{1, 2, 4}, nil},
		{"mnist_cnn", "mnist", []int{64, 256, 1024}, nil},
		{"mlp_512x2", "mnist", []int{64, 256, 1024}, nil},
		{"mlp_1024x3", "mnist", []int{64, 256, 1024}, nil},
		{"mlp_4096x5", "mnist", []int{64, 256, 1024}, nil},
	},
	suspend: []string{"sizes=2,8,32", "training=resnet50,16,100"},
	aside:   asidePlan{training{"resnet50", "imagenet", 16, nil}, training{"mnist_cnn", "mnist", 64, nil}, 150, 10, ""},
	window:  2, warm: 0.3,
	pairs: []training{
		{"resnet50", "imagenet", 64, nil},
		{"vgg16", "imagenet", 32, nil},
		{"mobilenet_v2", "imagenet", 64, nil},
		{"efficientnet_b0", "imagenet", 64, nil},
		{"resnet18", "cifar100", 64, nil},
		{"xception", "imagenet", 32, nil},
		{"bert_base", "wikitext2", 16, nil},
		{"gpt2", "wikitext2", 4, nil},
		{"dlrm", "criteo", 8192, nil},
	},
	suite: []training{
		{"resnet50", "imagenet", 64, nil},
		{"bert_base", "wikitext2", 16, nil},
		{"mobilenet_v2", "imagenet", 64, nil},
		{"gpt2", "wikitext2", 4, nil},
		{"efficientnet_b0", "imagenet", 64, nil},
		{"resnet18", "cifar100", 64, nil},
	},
}

// dryPlan takes the same steps with tiny shapes on the CPU. The suite's tasks are
// simulated ones, named after workloads.
var dryPlan = plan{
	device: "cpu",
	steps:  4,
	networks: []network{
		{"mnist_cnn", "mnist", []int{2, 4}, nil},
		{"resnet18", "cifar100", []int{2}, nil},
	},
	suspend: []string{"sizes=0.01", "training=mnist_cnn,8,24"},
	aside:   asidePlan{training{"resnet50", "imagenet", 64, nil}, training{"resnet18", "cifar100", 64, nil}, 0, 3, "20G"},
	window:  0.3, warm: 0.1,
	pairs: []training{
		{"mnist_cnn", "mnist", 4, nil},
		{"mlp_128x2", "mnist", 4, nil},
	},
	suite: []training{
		{"resnet50", "imagenet", 64, nil},
		{"mobilenet_v2", "imagenet", 64, nil},
		{"resnet18", "cifar100", 64, nil},
	},
}

// simulated is the workload that simtask plays instead of a training.
var simulated = map[string]string{
	"resnet50":     "resnet50-imagenet-bs64",
	"mobilenet_v2": "mobilenet-v2-imagenet-bs64",
	"resnet18":     "resnet18-cifar100-bs64-20e",
}

// The methods below are for the report's template.

// ID is the training's name in files and tasks.
func (t training) ID() string { return t.id() }

// Name is the training's name in the catalogue.
func (t training) Name() string { return t.name() }

// Batch is the batch size.
func (t training) Batch() int { return t.batch }

// Suffix ends the names of its file and profiles.
func (p *pairing) Suffix() string { return p.suffix() }

// Beyond is the memory of the process beyond PyTorch's reserved memory, in bytes;
// 0: not measured.
func (t trained) Beyond() int64 {
	if t.Reserved == 0 || t.Process <= t.Reserved {
		return 0
	}
	return t.Process - t.Reserved
}

// Beyond is the memory of a task as carma saw it, beyond its PyTorch's reserved
// memory, in bytes.
func (t taskRun) Beyond() int64 { return t.beyond() }
