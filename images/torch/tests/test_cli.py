"""The command line: refusals, in one line with exit code 2, and defaults."""

import contextlib
import io
import os
import unittest
from unittest import mock

from carma_train import catalogue, cli

from . import program


def refusal(*argv):
    err = io.StringIO()
    try:
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            return cli.main(list(argv)), err.getvalue()
    except SystemExit as e:
        return e.code, err.getvalue()


class CommandLine(unittest.TestCase):
    def test_refused(self):
        for argv, want in (
            ((), "name a model: resnet18"),
            (("resnet5",), "unknown model 'resnet5'; the nearest is resnet50"),
            (("gpt-2-large",), "the nearest is gpt2_large"),
            (("resnet18", "--optimizer", "adan"), "the nearest is adam"),
            (("resnet18", "--batch-size", "0"), "'0' is not a whole number from 1 to 1073741824; the nearest is 1"),
            (("resnet18", "--batch-size", "many"), "'many' is not a whole number"),
            (("resnet18", "--minutes", "nan"), "'nan' is not a number"),
            (("resnet18", "--seq-len", "8"), "--seq-len: resnet18 takes no text; --image-size"),
            (("bert_base", "--seq-len", "513"), "at most 512"),
            (("bert_base", "--image-size", "224"), "bert_base takes text; --seq-len"),
            (("resnet18", "--dataset", "mnist"), "imagenet, cifar10, cifar100"),
            (("mnist_cnn", "--image-size", "32"), "takes 28 pixels only"),
            (("dlrm", "--image-size", "32"), "takes no images"),
            (("inception_v3", "--image-size", "74"), "at least 75"),
            (("unet", "--image-size", "500"), "the nearest is 512"),
            (("resnet18", "--layers", "2"), "no transformer"),
            (("resnet18", "--save-every", "2"), "add --checkpoint"),
            (("resnet18", "--batch-size", "3", "--gpus", "2", "--device", "cpu"), "not a multiple of the 2 GPUs; the nearest is 4"),
            (("resnet18", "--data", "/no/such", "--device", "cpu"), "--data /no/such: no such file or folder"),
            (("unet", "--data", "/", "--device", "cpu"), "only classifiers and language models read files"),
            (("resnet18", "--no-such-flag"), "unrecognized arguments: --no-such-flag"),
        ):
            with self.subTest(argv):
                code, err = refusal(*argv)
                self.assertEqual((code, len(err.splitlines())), (2, 1), err)
                self.assertIn(want, err)

    def test_checkpoint_folder_that_is_a_file(self):
        code, err = refusal("mlp_128x2", "--checkpoint", os.path.abspath(__file__), "--device", "cpu")
        self.assertEqual(code, 2)
        self.assertIn("name a folder that uid", err)

    def test_batch_size(self):
        for env, argv, want in (("", (), 32), ("8", (), 8), ("8", ("--batch-size", "4"), 4)):
            with mock.patch.dict(os.environ, {cli.BATCH: env}):
                self.assertEqual(cli.checked(["resnet18", *argv]).batch_size, want)
        with mock.patch.dict(os.environ, {cli.BATCH: "0"}):
            code, err = refusal("resnet18")
        self.assertEqual((code, len(err.splitlines())), (2, 1))
        self.assertIn("CARMA_BATCH_SIZE: '0' is not a whole number", err)

    def test_sizes(self):
        for argv, want in ((["resnet18"], 224), (["resnet18", "--dataset", "cifar100"], 32), (["Inception-V3"], 299), (["gpt2_xl"], 1024)):
            self.assertEqual(cli.checked(argv).size, want)

    def test_each_model_fits_its_data_set(self):
        for model in catalogue.MODELS.values():
            self.assertTrue(catalogue.fits(model, model.dataset), model.name)

    def test_error_of_pytorch_is_its_own(self):
        # Batch norm refuses one number for a channel.
        code, _, err = program.run("resnet18", "--batch-size", 1, "--image-size", 16, "--steps", 1, "--device", "cpu")
        self.assertEqual(code, 1)
        self.assertIn("ValueError: Expected more than 1 value per channel", err)


if __name__ == "__main__":
    unittest.main()
