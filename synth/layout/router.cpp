// Routes nets on a lattice by negotiated congestion: every net takes its cheapest tree, wires may
// first share nodes, and sharing gets dearer until none is left. routing.py documents the data.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

constexpr uint16_t BLOCKED = 0xffff;
constexpr uint32_t MOST_COST = 8000;    // of a node
constexpr uint32_t MOST_HISTORY = 7000, MOST_MORE = 40;  // of it for sharing in the past, in a round
constexpr uint32_t FADING = 50;         // of how many parts one is forgotten in a round
constexpr double MOST_SHARING = 300;    // of it for each net that is there now
constexpr int WIDER = 20;               // rounds after which nets may not go further from their pins
constexpr int RELEASED = 64;            // searches between which buckets keep their memory
constexpr uint32_t BUCKETS = 1 << 15;   // more than the costliest step
constexpr uint32_t REACH = 1 << 18;     // costliest path
// From this round on nodes forget sharing; when no fewer are shared for as many rounds, the few nets
// that are left share cheaply again.
constexpr int PATIENCE = 12;
constexpr size_t FEW = 30;
constexpr double AGAIN = 20;
// So few are routed in a new order each round.
constexpr size_t UNORDERED = 200;
constexpr uint32_t UNSEEN = 0xffffffff;
// Where the best path to a node comes from.
enum : uint32_t { TREE, LOWER, HIGHER, ABOVE, BELOW, TERMINAL };

struct Layer {
  int horizontal, track_step, node_step, extension, gap;  // gap: to a cut below
  int step_cost, nodes, stride;
  uint32_t base;
  std::vector<int64_t> column, row;  // what x and y add to an index, -1 where no node is
};

// A node: its index, layer, x and y.
using Node = uint64_t;
inline Node node_of(uint32_t index, int layer, int x, int y) {
  return uint64_t(index) << 32 | uint64_t(layer) << 28 | uint64_t(x) << 14 | uint64_t(y);
}
inline uint32_t index_of(Node n) { return uint32_t(n >> 32); }
inline int layer_of(Node n) { return int(n >> 28) & 15; }
inline int x_of(Node n) { return int(n >> 14) & 0x3fff; }
inline int y_of(Node n) { return int(n) & 0x3fff; }

struct Box {
  int left = 1 << 20, low = 1 << 20, right = -1, top = -1;
  void add(int x, int y) {
    left = std::min(left, x), right = std::max(right, x);
    low = std::min(low, y), top = std::max(top, y);
  }
  int away(const Box &o) const {
    return std::max({0, o.left - right, left - o.right}) +
           std::max({0, o.low - top, low - o.top});
  }
};

struct Net {
  std::vector<std::vector<Node>> terminals;
  std::vector<Node> paths;          // from the end of each to its start in the tree, 0 between
  std::vector<Node> ends;           // of paths at terminals
  std::vector<uint32_t> nodes;      // that it takes, with the spaces behind its wires
  Box box;
};

class Router {
 public:
  Router(const int32_t *grid, const int32_t *blocked, const int32_t *pins) {
    width_ = *grid++, height_ = *grid++;
    const int layers = *grid++;
    x_cost_ = *grid++, y_cost_ = *grid++, via_cost_ = *grid++;
    uint32_t size = 0;
    for (int i = 0; i < layers; i++, grid += 5) {
      Layer l{grid[0], grid[1], grid[2], grid[3], grid[4], 0, 0, 0, size, {}, {}};
      l.step_cost = l.node_step * (l.horizontal ? x_cost_ : y_cost_);
      l.nodes = ((l.horizontal ? width_ : height_) - 1) / l.node_step + 1;
      l.stride = l.nodes + l.extension + 1;
      auto along = [&](int v) { return v % l.node_step ? -1 : v / l.node_step; };
      auto across = [&](int v) {
        return v % l.track_step ? -1 : int64_t(v / l.track_step) * l.stride;
      };
      for (int x = 0; x < width_; x++) l.column.push_back(l.horizontal ? along(x) : across(x));
      for (int y = 0; y < height_; y++) l.row.push_back(l.horizontal ? across(y) : along(y));
      const int tracks = ((l.horizontal ? height_ : width_) - 1) / l.track_step + 1;
      size += uint32_t(tracks) * l.stride;
      layers_.push_back(std::move(l));
    }
    uses_.assign(size, 0);
    history_.assign(size, 0);
    cost_.assign(size, 0);
    seen_.assign(size, UNSEEN);
    buckets_.resize(BUCKETS);
    // Boxes: a layer, and the corners, which belong to them.
    for (int count = *blocked++; count > 0; count--, blocked += 5)
      for (int x = std::max(0, blocked[1]); x <= std::min(width_ - 1, blocked[3]); x++)
        for (int y = std::max(0, blocked[2]); y <= std::min(height_ - 1, blocked[4]); y++) {
          Node n;
          if (at(blocked[0], x, y, n)) history_[index_of(n)] = BLOCKED;
        }
    // Nets, each of terminals, each of nodes.
    nets_.resize(*pins++);
    for (Net &net : nets_) {
      net.terminals.resize(*pins++);
      for (auto &terminal : net.terminals) {
        const int count = *pins++;
        for (int i = 0; i < count; i++, pins += 3) {
          Node n;
          if (!at(pins[0], pins[1], pins[2], n)) continue;
          terminal.push_back(n);
          net.box.add(pins[1], pins[2]);
          // Wires that do not end here should leave pins with few places alone.
          uint16_t &history = history_[index_of(n)];
          if (history != BLOCKED) history = uint16_t(std::min(200, history + 1 + 8 / count));
        }
      }
    }
  }

  // Number of nodes that several nets share in the end, -1 - n if net n has no path.
  int64_t run(int rounds, std::vector<int32_t> &counts) {
    std::vector<uint32_t> order;
    for (uint32_t n = 0; n < nets_.size(); n++)
      if (nets_[n].terminals.size() > 1) order.push_back(n);
    auto size = [&](uint32_t n) {
      const Box &b = nets_[n].box;
      return (b.right - b.left) * x_cost_ + (b.top - b.low) * y_cost_;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return size(a) < size(b); });
    std::vector<uint32_t> now = order;
    double sharing = 4;
    std::minstd_rand draw(1);
    size_t least = SIZE_MAX;
    int stays = 0;
    for (int round = 0; round < rounds; round++) {
      sharing_ = uint32_t(sharing);
      for (size_t i = 0; i < cost_.size(); i++) price(i);
      for (uint32_t n : now) {
        remove(nets_[n]);
        int margin = 12 + 6 * std::min(round, WIDER);
        while (!route(nets_[n], margin)) {
          if (margin > width_ + height_) {
            if (!apart_) return -1 - int64_t(n);
            apart_ = false;
          }
          margin *= 4;
        }
        apart_ = true;
        add(nets_[n]);
      }
      now.clear();
      std::vector<uint32_t> shared;
      for (uint32_t n : order) {
        bool conflict = false;
        for (uint32_t i : nets_[n].nodes)
          if (uses_[i] > 1) shared.push_back(i), conflict = true;
        if (conflict) now.push_back(n);
      }
      std::sort(shared.begin(), shared.end());
      shared.erase(std::unique(shared.begin(), shared.end()), shared.end());
      counts.push_back(int32_t(shared.size()));
      counts.push_back(int32_t(now.size()));
      if (shared.empty()) return 0;
      for (size_t i = 0; round >= PATIENCE && i < history_.size(); i++)
        if (history_[i] != BLOCKED && uses_[i] < 2)
          history_[i] = uint16_t(history_[i] * (FADING - 1) / FADING);
      for (uint32_t i : shared)
        if (history_[i] != BLOCKED)
          history_[i] = uint16_t(std::min(
              MOST_HISTORY,
              history_[i] + std::min(MOST_MORE, history_[i] / 4 + 4u + 2u * uses_[i])));
      sharing = std::min(sharing * 1.5, MOST_SHARING);
      // A fixed order lets few nets take each other's places for ever.
      if (now.size() < UNORDERED)
        for (size_t i = now.size(); i > 1; i--) std::swap(now[i - 1], now[draw() % i]);
      // So does a high price: one crossing is then cheaper than the places along any other way.
      if (shared.size() < least) least = shared.size(), stays = 0;
      if (++stays > PATIENCE && now.size() < FEW) stays = 0, sharing = AGAIN;
    }
    return counts[counts.size() - 2];
  }

  // Straight pieces, vias and ends of paths: net, then layer, x and y of both ends; an end of a path
  // has -1 as its second layer.
  std::vector<int32_t> result() const {
    std::vector<int32_t> out;
    auto put = [&](size_t net, Node a, Node b, int layer) {
      out.insert(out.end(), {int32_t(net), layer_of(a), x_of(a), y_of(a), layer, x_of(b), y_of(b)});
    };
    for (size_t n = 0; n < nets_.size(); n++) {
      const std::vector<Node> &paths = nets_[n].paths;
      for (size_t i = 0; i < paths.size(); i++) {
        while (paths[i + 1]) {
          size_t j = i + 1;
          const bool via = layer_of(paths[j]) != layer_of(paths[i]);
          while (!via && paths[j + 1] && layer_of(paths[j + 1]) == layer_of(paths[i])) j++;
          put(n, paths[i], paths[j], layer_of(paths[j]));
          i = j;
        }
        i++;
      }
      for (Node end : nets_[n].ends) put(n, end, end, -1);
    }
    return out;
  }

  std::vector<int32_t> shared() const {
    std::vector<int32_t> out;
    for (size_t n = 0; n < nets_.size(); n++)
      for (Node node : nets_[n].paths)
        if (node) {
          const Layer &l = layers_[layer_of(node)];
          for (int k = 0; k <= l.extension; k++)
            if (uses_[index_of(node) + k] > 1) {
              out.insert(out.end(), {layer_of(node), x_of(node), y_of(node), int32_t(n)});
              break;
            }
        }
    return out;
  }

 private:
  bool at(int layer, int x, int y, Node &node) const {
    const Layer &l = layers_[layer];
    if (x < 0 || y < 0 || x >= width_ || y >= height_) return false;
    if (l.column[x] < 0 || l.row[y] < 0) return false;
    node = node_of(uint32_t(l.base + l.column[x] + l.row[y]), layer, x, y);
    return true;
  }

  void price(size_t i) {
    cost_[i] = history_[i] == BLOCKED
                   ? BLOCKED
                   : uint16_t(std::min(MOST_COST, history_[i] + sharing_ * uses_[i]));
  }

  void remove(Net &net) {
    for (uint32_t i : net.nodes) uses_[i]--, price(i);
    net.nodes.clear();
    net.paths.clear();
  }

  void add(Net &net) {
    for (Node n : net.paths)
      if (n)
        for (int k = 0; k <= layers_[layer_of(n)].extension; k++)
          net.nodes.push_back(index_of(n) + k);
    std::sort(net.nodes.begin(), net.nodes.end());
    net.nodes.erase(std::unique(net.nodes.begin(), net.nodes.end()), net.nodes.end());
    for (uint32_t i : net.nodes) uses_[i]++, price(i);
  }

  // Cost of a node entered from another layer with the spaces behind it, BLOCKED if there is none.
  uint32_t entry(uint32_t index, int layer) const {
    uint32_t cost = 0;
    for (int k = 0; k <= layers_[layer].extension; k++) {
      if (cost_[index + k] == BLOCKED) return BLOCKED;
      cost += cost_[index + k];
    }
    return cost;
  }

  bool route(Net &net, int margin) {
    net.paths.clear();
    net.ends.clear();
    const size_t count = net.terminals.size();
    std::vector<Box> boxes(count);
    for (size_t t = 0; t < count; t++)
      for (Node n : net.terminals[t]) boxes[t].add(x_of(n), y_of(n));
    window_ = {net.box.left - margin, net.box.low - margin, net.box.right + margin,
               net.box.top + margin};
    window_ = {std::max(0, window_.left), std::max(0, window_.low),
               std::min(width_ - 1, window_.right), std::min(height_ - 1, window_.top)};
    // Terminals join in the order of their distance to those that have.
    std::vector<int> away(count, 1 << 28);
    std::vector<char> joined(count, 0);
    std::vector<Node> tree;
    size_t last = 0;
    joined[0] = 1;
    for (size_t done = 1; done < count; done++) {
      size_t next = count;
      for (size_t t = 0; t < count; t++)
        if (!joined[t]) {
          away[t] = std::min(away[t], boxes[t].away(boxes[last]));
          if (next == count || away[t] < away[next]) next = t;
        }
      if (!search(net, tree, joined, net.terminals[next], boxes[next])) return false;
      for (size_t i = net.paths.size() - path_; i < net.paths.size(); i++)
        if (net.paths[i]) tree.push_back(net.paths[i]);
      joined[next] = 1;
      last = next;
    }
    return true;
  }

  uint32_t guess(int layer, int x, int y) const {
    const int dx = std::max({0, target_.left - x, x - target_.right});
    const int dy = std::max({0, target_.low - y, y - target_.top});
    int vias = std::abs(layer - target_layer_);
    if (!vias && (layers_[layer].horizontal ? dy : dx)) vias = 2;
    return uint32_t(dx * x_cost_ + dy * y_cost_ + vias * via_cost_);
  }

  void reach(uint32_t index, int layer, int x, int y, uint32_t cost, uint32_t from) {
    if (cost >= REACH) return;
    const uint32_t value = (start_ + cost) << 3 | from;
    if (value >> 3 >= seen_[index] >> 3) return;
    seen_[index] = value;
    const uint32_t key = cost + guess(layer, x, y);
    buckets_[key % BUCKETS].push_back(node_of(index, layer, x, y));
    if (!waiting_++ || key < key_) key_ = key;
  }

  // Whether a cut below `node` would be too close to one at another end of the net's paths.
  bool beside(const Net &net, Node node) const {
    const int gap = layers_[layer_of(node)].gap;
    for (Node end : net.ends) {
      const int64_t away = std::llabs(int64_t(index_of(end)) - int64_t(index_of(node)));
      if (apart_ && away && away <= gap) return true;
    }
    return false;
  }

  bool search(Net &net, const std::vector<Node> &tree, const std::vector<char> &joined,
              const std::vector<Node> &goals, const Box &box) {
    target_ = box;
    target_layer_ = layer_of(goals[0]);
    if (start_ < REACH) {
      start_ = (UNSEEN >> 3) - REACH;
      std::fill(seen_.begin(), seen_.end(), UNSEEN);
    }
    if (++searches_ % RELEASED == 0)
      for (auto &bucket : buckets_) std::vector<Node>().swap(bucket);
    start_ -= REACH;
    waiting_ = 0, key_ = 0;
    for (Node n : tree) reach(index_of(n), layer_of(n), x_of(n), y_of(n), 0, TREE);
    for (size_t t = 0; t < joined.size(); t++)
      if (joined[t])
        for (Node n : net.terminals[t]) {
          const uint32_t cost = entry(index_of(n), layer_of(n));
          if (cost != BLOCKED && !beside(net, n))
            reach(index_of(n), layer_of(n), x_of(n), y_of(n), cost + via_cost_, TERMINAL);
        }
    bool success = false;
    while (waiting_) {
      auto &bucket = buckets_[key_ % BUCKETS];
      if (bucket.empty()) {
        key_++;
        continue;
      }
      const Node node = bucket.back();
      bucket.pop_back();
      waiting_--;
      const uint32_t index = index_of(node), cost = (seen_[index] >> 3) - start_;
      const int layer = layer_of(node), x = x_of(node), y = y_of(node);
      if (cost + guess(layer, x, y) < key_) continue;
      if (layer == target_layer_ && x >= box.left && x <= box.right && y >= box.low &&
          y <= box.top && !beside(net, node) &&
          std::find(goals.begin(), goals.end(), node) != goals.end()) {
        trace(net, node);
        success = true;
        break;
      }
      expand(node, cost);
    }
    // Keys of what still waits are within the ring behind the last one.
    for (uint32_t key = key_; waiting_; key++) {
      waiting_ -= uint32_t(buckets_[key % BUCKETS].size());
      buckets_[key % BUCKETS].clear();
    }
    return success;
  }

  void expand(Node node, uint32_t cost) {
    const int layer = layer_of(node), x = x_of(node), y = y_of(node);
    const uint32_t index = index_of(node);
    const Layer &l = layers_[layer];
    const int dx = l.horizontal ? l.node_step : 0, dy = l.horizontal ? 0 : l.node_step;
    if (x + dx <= window_.right && y + dy <= window_.top) {
      const uint16_t more = cost_[index + 1 + l.extension];
      if (more != BLOCKED) reach(index + 1, layer, x + dx, y + dy, cost + l.step_cost + more, LOWER);
    }
    if (x - dx >= window_.left && y - dy >= window_.low) {
      const uint16_t more = cost_[index - 1];
      if (more != BLOCKED) reach(index - 1, layer, x - dx, y - dy, cost + l.step_cost + more, HIGHER);
    }
    for (int up = 0; up < 2; up++) {
      const int other = layer + (up ? 1 : -1);
      Node n;
      if (other < 0 || other >= int(layers_.size()) || !at(other, x, y, n)) continue;
      const uint32_t more = entry(index_of(n), other);
      if (more == BLOCKED) continue;
      reach(index_of(n), other, x, y, cost + via_cost_ + more, up ? BELOW : ABOVE);
    }
  }

  // Adds the path that ends at `node`.
  void trace(Net &net, Node node) {
    const size_t before = net.paths.size();
    for (;;) {
      net.paths.push_back(node);
      const int layer = layer_of(node), x = x_of(node), y = y_of(node);
      const Layer &l = layers_[layer];
      const int dx = l.horizontal ? l.node_step : 0, dy = l.horizontal ? 0 : l.node_step;
      const uint32_t from = seen_[index_of(node)] & 7;
      if (from == TREE || from == TERMINAL) break;
      if (from == LOWER) node = node_of(index_of(node) - 1, layer, x - dx, y - dy);
      if (from == HIGHER) node = node_of(index_of(node) + 1, layer, x + dx, y + dy);
      if (from == ABOVE || from == BELOW) {
        at(layer + (from == BELOW ? -1 : 1), x, y, node);
      }
    }
    net.ends.push_back(net.paths[before]);
    if ((seen_[index_of(node)] & 7) == TERMINAL) net.ends.push_back(node);
    net.paths.push_back(0);
    path_ = net.paths.size() - before;
  }

  int width_, height_, x_cost_, y_cost_, via_cost_;
  std::vector<Layer> layers_;
  std::vector<Net> nets_;
  std::vector<uint8_t> uses_;       // nets at each node
  std::vector<uint16_t> history_;   // what sharing it has cost
  std::vector<uint16_t> cost_;      // what another net pays for it now
  std::vector<uint32_t> seen_;      // start_ + cost of the best path, and where it comes from
  std::vector<std::vector<Node>> buckets_;
  bool apart_ = true;               // whether ends keep the distance of cuts
  uint32_t start_ = 0, waiting_ = 0, key_ = 0, sharing_ = 0, searches_ = 0;
  Box window_, target_;
  int target_layer_ = 0;
  size_t path_ = 0;
};

std::vector<int32_t> result;

}  // namespace

extern "C" int64_t vip_route(const int32_t *grid, const int32_t *blocked, const int32_t *pins,
                             int rounds, int64_t *sizes) {
  Router router(grid, blocked, pins);
  std::vector<int32_t> counts;
  const int64_t left = router.run(rounds, counts);
  if (left < 0) return left;
  result = router.result();
  const std::vector<int32_t> shared = router.shared();
  sizes[0] = int64_t(result.size()), sizes[1] = int64_t(shared.size());
  sizes[2] = int64_t(counts.size());
  result.insert(result.end(), shared.begin(), shared.end());
  result.insert(result.end(), counts.begin(), counts.end());
  return left;
}

extern "C" void vip_routes(int32_t *to) {
  std::copy(result.begin(), result.end(), to);
  std::vector<int32_t>().swap(result);
}
