"""Names of registers, wires and parts of a processing engine that relations refer to."""

from pe.counters import Counters
from pe.frontend.arc import Arc
from pe.frontend.decode import Decode
from pe.frontend.dispatch import Dispatch
from pe.frontend.fetch import Fetch
from pe.frontend.issue import Issue
from pe.frontend.operands import Operands
from pe.frontend.register_file import RegisterFile
from pe.lsu.request import LoadStoreRequest
from pe.lsu.response import LoadStoreResponse
from pe.lsu.unit import LoadStore
from pe.sequencer import Sequencer
from pe.vector.control import VectorControl

ARC = Arc.probes.within("arc")
COUNTERS = Counters.probes.within("counters")
DECODE = Decode.probes.within("decode")
DISPATCH = Dispatch.probes.within("dispatch")
FETCH = Fetch.probes.within("fetch")
ISSUE = Issue.probes.within("issue")
LSU = LoadStore.probes.within("load_store")
REQUEST = LoadStoreRequest.probes.within("request").within("load_store")
RESPONSE = LoadStoreResponse.probes.within("response").within("load_store")
OPERANDS = Operands.probes.within("operands")
REGISTERS = RegisterFile.probes.within("registers")
SEQUENCER = Sequencer.probes.within("sequencer")
#: Probes of the vector unit's control within an engine.
CONTROL = VectorControl.probes.within("control").within("vector")
