"""One forward pass as a table of layers.

A layer is an operator, or a region: several operators that the GPU does in
one (attention, dropout) or that belong together (a recurrent layer). A view
belongs to the layer that owns its storage. Autograd's saved-tensor hooks show
what it keeps: tensors saved before an operator runs are its inputs, tensors
saved after it are its outputs.
"""

import collections

from . import ops, parameters, quantized, shapes
from .tensors import Memory, inside, storage

MOST = 20000  # layers


class Region:
    def __init__(self, kind):
        self.kind, self.reads, self.params, self.packs, self.made = kind, [], [], [], {}
        self.info = {}


class Table:
    def __init__(self, torch, root, batch, dim):
        self.torch, self.batch, self.dim = torch, max(batch, 1), dim
        self.layers, self.memory, self.inputs = [], {}, []
        self.pending, self.params, self.assigned, self.used = [], {}, {}, set()
        self.buffers, self.names, self.roots = set(), {}, []
        self.stack, self.region, self.block, self.blocks = [], None, 0, 0
        self.width = 4  # bytes of an element of the network's precision
        self.kept = 0
        self.alive = collections.deque(maxlen=100)  # what autograd holds of the last saved tensors
        self.whole = self.broken = False  # the outermost module has returned; a module has raised
        self.enter(root)

    # ---- modules ----

    def enter(self, root):
        if any(root is r for r in self.roots):
            return
        self.roots.append(root)
        for name, module in root.named_modules():
            self.names.setdefault(id(module), (name or type(root).__name__, not list(module.children())))
        for p in root.parameters():
            self.params[storage(p)[0]] = p
        for b in root.buffers():
            self.buffers.add(storage(b)[0])
        first = next((p for p in root.parameters() if p.is_floating_point()), None)
        if first is not None and len(self.roots) == 1:
            self.width = first.element_size()

    def add_inputs(self, value):
        for t in inside(self.torch, value):
            self.look(t)

    def name(self, op):
        if not self.stack:
            return op
        name, leaf = self.names.get(id(self.stack[-1]), (type(self.stack[-1]).__name__, True))
        return name if leaf else name + ":" + op

    # ---- storages ----

    def look(self, t):
        at, size = storage(t)
        m = self.memory.get(at)
        if m is not None and at and m.size == size:
            return m  # otherwise it is freed, and its address is another tensor's
        param = self.params.get(at) if at else None
        if param is None and t.is_leaf and t.requires_grad and at:
            param = self.params[at] = t
        m = Memory(size, t.shape, param=param)
        if param is None and at and at not in self.buffers and shapes.grows(t.shape, self.batch, self.dim):
            m.batched, m.input = True, len(self.inputs)
            m.side = t.is_floating_point() and t.element_size() != self.width
            self.inputs.append({"shape": self.per_sample(t.shape)[0], "bytes": t.element_size()})
        if at:
            self.memory[at] = m
        return m

    def per_sample(self, shape):
        return shapes.per_sample(shape, self.batch, self.dim)

    # ---- operators ----

    def op(self, func, args, kwargs, out):
        if len(self.layers) >= MOST:
            return
        name, inplace = ops.name_of(func)
        given = [self.look(t) for t in inside(self.torch, [args, kwargs])]
        ins = {id(m) for m in given}
        made = []
        for t in inside(self.torch, out):
            at, size = storage(t)
            old = self.memory.get(at)
            if at and old is not None and id(old) in ins:
                made.append((t, at, old))
            elif at:
                made.append((t, at, None))
        if not made:
            return
        t, at, old = made[0]
        if old is not None and not inplace:
            return  # a view
        if old is not None and (old.param is not None or at in self.buffers):
            return  # initialisation, running statistics
        batched = any(m.batched for m in given) or (not given and t.dim() > 1 and self.batch > 1 and shapes.grows(t.shape, self.batch, self.dim))
        uses = [m.param for m in given if m.param is not None]
        if len(given) == 1 and uses and quantized.bits(uses[0]) and name == "_to_copy":
            self.memory[at] = Memory(storage(t)[1], t.shape, param=uses[0])  # whoever takes it takes the weight
            return
        if self.region is not None:
            self._in_region(given, uses, made, batched)
            return
        if not batched and not uses and not any(m.layer is not None for m in given):
            for t, at, old in made:  # a constant
                self.memory[at] = old or Memory(storage(t)[1], t.shape)
            return
        weight = name in ("addmm", "mm", "bmm", "baddbmm", "linear", "mv") and any(not m.batched for m in given)
        layer = {"name": self.name(name), "type": ops.type_of(name, args, weight)}
        self._details(layer, name, args)
        packs, self.pending = self.pending, []
        self._emit(layer, given, uses, made, packs, batched, inplace and old is not None)

    def _details(self, layer, name, args):
        kind = layer["type"]
        if kind in ("conv", "conv_transpose") and len(args) > 8:
            layer.update(kernel=[int(k) for k in args[1].shape[2:]], stride=ops.one(args[3]), groups=int(args[8]))
        elif kind in ("max_pool", "avg_pool") and len(args) > 1:
            size = list(args[1]) if isinstance(args[1], (list, tuple)) else [args[1]]
            layer.update(kernel=[int(k) for k in size], stride=ops.one(args[2] if len(args) > 2 and args[2] else size))

    def _emit(self, layer, given, uses, made, packs, batched, inplace):
        n = len(self.layers)
        self.layers.append(layer)
        sources = []
        for m in given:
            s = m.layer if m.layer is not None else (-1 - m.input if m.input is not None else None)
            if s is not None and s not in sources:
                sources.append(s)
        layer["inputs"] = sources
        self._give_params(layer, n, uses)
        for i, (t, at, old) in enumerate(made):
            if i == 0:
                shape, whole = self.per_sample(t.shape) if batched else ([int(k) for k in t.shape] or [1], True)
                layer["out"] = [max(k, 1) for k in shape]
                if whole:
                    layer["whole"] = True
            if old is not None and i == 0:
                old.layer, old.batched = n, old.batched or batched
                continue
            other = not t.is_floating_point() or t.element_size() != self.width
            self.memory[at] = Memory(storage(t)[1], t.shape, layer=n, batched=batched, side=i > 0 or other)
        if inplace:
            layer["in_place"] = True
        if self.block:
            layer["block"] = self.block
            return
        layer["keeps"] = {}
        for m in packs:
            self._keep(n, m)

    def _give_params(self, layer, n, uses):
        """Parameters belong to the first layer that takes them. Where a layer
        has trained and frozen ones, or different types, the others are left to
        the end of the table."""
        fresh, seen = [], []
        for p in {id(p): p for p in uses}.values():
            self.used.add(id(p))
            if id(p) not in self.assigned:
                fresh.append(p)
            elif self.assigned[id(p)][0] != n:
                seen.append(p)
        if fresh:
            kind = parameters.kind(max(fresh, key=lambda p: (p.requires_grad, p.numel())), self.width)
            fresh = [p for p in fresh if parameters.kind(p, self.width) == kind]
            for p in fresh:
                self.assigned[id(p)] = (n, p)
            layer.update(parameters.described(fresh, self.width))
        elif seen:
            layer.update(params=[int(p.numel()) for p in seen], tied=True)

    def rest(self):
        """Layers for the parameters that no operator has taken."""
        kinds = {}
        for root in self.roots:
            for p in root.parameters():
                if id(p) not in self.assigned:
                    kinds.setdefault(parameters.kind(p, self.width), {})[id(p)] = p
        return [dict({"name": "(not used in this step)", "type": "other", "inputs": [len(self.layers) - 1], "out": [1],
                      "whole": True, "keeps": {}}, **parameters.described(list(of.values()), self.width)) for of in kinds.values()]

    # ---- what is kept ----

    def pack(self, t):
        """Notes that autograd saves t. Returns whether t is a parameter."""
        m = self.look(t)
        if m.param is not None:
            return True
        if self.block or not storage(t)[0]:
            return False
        if self.region is not None:
            self.region.packs.append(m)
            return False
        last = len(self.layers) - 1
        if m.layer == last and last >= 0 and (m.side or self.layers[last]["type"] in ops.KEEP_OUTPUT):
            self._keep(last, m)
        else:
            self.pending.append(m)
        return False

    def _keep(self, n, m):
        """Notes that layer n keeps m. A storage counts for the first layer that names it."""
        keeps = self.layers[n].setdefault("keeps", {})
        source = m.layer if m.layer is not None else (-1 - m.input if m.input is not None else None)
        if not m.kept:
            self.kept += m.size
        if m.side or source is None:
            if not m.kept:
                owner = self.layers[m.layer].setdefault("keeps", {}) if m.layer is not None else keeps
                self._bytes(owner, m)
        elif source == n:
            keeps["output"] = True
        elif source in self.layers[n]["inputs"]:
            at = self.layers[n]["inputs"].index(source)
            if at not in keeps.setdefault("inputs", []):
                keeps["inputs"].append(at)
        elif source >= 0:
            self.layers[source].setdefault("keeps", {})["output"] = True
        else:  # an input of the model that the operator itself did not name
            self.layers[n]["inputs"].append(source)
            keeps.setdefault("inputs", []).append(len(self.layers[n]["inputs"]) - 1)
        m.kept = True

    def _bytes(self, keeps, m):
        grows = m.batched and m.size % self.batch == 0 and any(n % self.batch == 0 for n in m.shape[:2])
        if m.layer is not None and self.layers[m.layer]["type"] == "batch_norm":
            grows = False
        key = "bytes" if grows else "whole"
        keeps[key] = keeps.get(key, 0) + (m.size // self.batch if grows else m.size)

    # ---- regions ----

    def open(self, kind):
        self.flush()
        self.region = Region(kind)
        return self.region

    def _in_region(self, given, uses, made, batched):
        r = self.region
        for m in given:
            if id(m) not in {id(x) for x in r.made.values()}:
                r.reads.append(m)
        r.params.extend(uses)
        for t, at, old in made:
            m = old or Memory(storage(t)[1], t.shape, batched=batched)
            m.batched = m.batched or batched
            if old is None:
                self.memory[at] = r.made[at] = m

    def close(self, out, rule=None):
        """The region is one layer, whose output is out. rule says what it
        keeps on a GPU; without it, what was saved is kept."""
        r, self.region = self.region, None
        tensors = [t for t in inside(self.torch, out)]
        if not tensors or not (r.made or r.reads):
            return
        at, _ = storage(tensors[0])
        inplace = at not in r.made
        if inplace and (at not in self.memory or r.kind != "dropout" or not r.made):
            return  # the region has no operator
        batched = any(m.batched for m in r.reads)
        layer = dict({"name": self.name(r.kind), "type": r.kind}, **r.info)
        made = [(tensors[0], at, self.memory[at] if inplace else None)]
        block, packs = self.block, r.packs
        self._emit(layer, r.reads, r.params, made, [], batched, inplace)
        n, main = len(self.layers) - 1, self.memory[at]
        for key, m in list(r.made.items()):
            if key != at and self.memory.get(key) is m:
                m.layer, m.side = n, True
            m.side = True
            if m.layer is None:
                m.layer = n
        if block:
            return
        if rule is not None:
            rule(self, n, main, tensors[0])
            return
        own = {id(m) for m in r.made.values()} if r.kind == "cross_entropy" else ()
        for m in packs:
            if id(m) not in own:  # the estimator knows what a cross-entropy makes
                self._keep(n, main if at in r.made and m is r.made[at] else m)

    def flush(self):
        """Handles saved tensors that no operator has claimed."""
        packs, self.pending = self.pending, []
        for m in packs:
            if self.layers:
                self._keep(len(self.layers) - 1, m)
