package command

import (
	"slices"
	"strings"
	"testing"
)

func TestCutBatch(t *testing.T) {
	for line, want := range map[string]struct {
		batch int
		rest  string
	}{
		"train.py --batch-size 64 --lr 0.1":                    {64, "train.py --lr 0.1"},
		"train.py --batch_size=64":                             {64, "train.py"},
		"train.py -b 32 x":                                     {32, "train.py x"},
		"train.py -b32":                                        {32, "train.py"},
		"train.py --bs 8":                                      {8, "train.py"},
		"train.py --per_device_train_batch_size 4":             {4, "train.py"},
		"train.py data=x train.batch_size=128":                 {128, "train.py data=x"},
		"train.py ++loader.batch_size=16":                      {16, "train.py"},
		"train.py --batch-size=0":                              {0, "train.py --batch-size=0"},
		"train.py --batch-size many":                           {0, "train.py --batch-size many"},
		"train.py --batch-size":                                {0, "train.py --batch-size"},
		"train.py --eval-batch-size 64":                        {0, "train.py --eval-batch-size 64"},
		"train.py --batches 64":                                {0, "train.py --batches 64"},
		"train.py --batch-size 99999999999":                    {0, "train.py --batch-size 99999999999"},
		"":                                                     {0, ""},
		"main.py fit --data.batch_size=8":                      {8, "main.py fit"},
		"main.py fit --data.train.batch_size 8":                {8, "main.py fit"},
		"main.py fit --data.val.batch_size=8":                  {0, "main.py fit --data.val.batch_size=8"},
		"main.py val_loader.batch_size=8 loader.batch_size=4":  {4, "main.py val_loader.batch_size=8"},
		"litgpt pretrain --train.micro_batch_size 4":           {4, "litgpt pretrain"},
		"train.py --batch_size_per_gpu 4":                      {4, "train.py"},
		"-m llama_recipes.finetuning --batch_size_training 4":  {4, "-m llama_recipes.finetuning"},
		"train.py --cfg-options data.samples_per_gpu=4":        {4, "train.py --cfg-options"},
		"train.py --batch-size 64 --per_device_batch_size 999": {64, "train.py --per_device_batch_size 999"},
	} {
		batch, rest := CutBatch(strings.Fields(line))
		if batch != want.batch || strings.Join(rest, " ") != want.rest {
			t.Errorf("%q: %d, %q", line, batch, rest)
		}
	}
	batch, rest := CutBatch([]string{"sh", "-c", "cd /x && python train.py --batch-size 64 > log"})
	if want := []string{"sh", "-c", "cd /x && python train.py > log"}; batch != 64 || !slices.Equal(rest, want) {
		t.Errorf("shell: %d, %q", batch, rest)
	}
}
