// The memories of a simulated design, which Python reads and writes in place.

#include <string>

#include "verilated.h"
#include "verilated_sym_props.h"
#include "verilated_syms.h"

namespace {

std::string g_arrays;

}  // namespace

extern "C" {

// The public arrays of the design, one per line: scope, name, bits of an element, elements.
const char* vip_arrays() {
    g_arrays.clear();
    for (const auto& scope : *Verilated::scopeNameMap()) {
        const VerilatedVarNameMap* variables = scope.second->varsp();
        if (!variables) continue;
        for (const auto& variable : *variables) {
            if (variable.second.udims() != 1) continue;
            g_arrays += std::string(scope.first) + " " + variable.first + " " +
                        std::to_string(variable.second.entBits()) + " " +
                        std::to_string(variable.second.elements(1)) + "\n";
        }
    }
    return g_arrays.c_str();
}

// Address of the elements of such an array (1, 2, 4 or 8 bytes each), or null.
void* vip_array(const char* scope_name, const char* name) {
    const VerilatedScope* scope = Verilated::scopeFind(scope_name);
    const VerilatedVar* variable = scope ? scope->varFind(name) : nullptr;
    return variable ? variable->datap() : nullptr;
}

}  // extern "C"
