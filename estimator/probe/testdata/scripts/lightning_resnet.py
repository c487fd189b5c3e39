"""ResNet-50 in a LightningModule, 16-bit mixed precision."""
import lightning as L
import torch
import torchvision


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torchvision.models.resnet50()

    def training_step(self, batch, _):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)]


data = torchvision.datasets.FakeData(512, (3, 224, 224), transform=torchvision.transforms.ToTensor())
loader = torch.utils.data.DataLoader(data, batch_size=32, num_workers=4, pin_memory=True)
trainer = L.Trainer(max_epochs=2, precision="16-mixed", accelerator="gpu", devices=1, logger=False, enable_checkpointing=False)
trainer.fit(Classifier(), loader)
