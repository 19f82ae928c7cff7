// NCCL's topology XML (NCCL, src/graph/xml.cc and topo.cc): <system> holds a <cpu> for each NUMA node, that holds
// nested <pci> devices, and those a <gpu> with its <nvlink>s, or a <nic> with a <net> for each port. A file that is
// meant for NCCL_TOPO_FILE may end at <pci> devices and their classes: NCCL asks the machine for the rest.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <pugixml.hpp>
#include <set>
#include <tuple>

#include "gccl/gccl.h"
#include "libgccl/topology/description.hpp"
#include "libgccl/topology/islands.hpp"

namespace gccl::topology {
namespace {

using pugi::xml_node;

constexpr std::size_t kDepthMax = 64;         // of nested <pci>
constexpr std::size_t kThingsMax = 1u << 14;  // GPUs, ports, devices that hold neither
constexpr double kUnknownSpeedMbps = 10000;   // NCCL's, where a port does not say
constexpr double kMbpsPerGBps = 8000;
// The first digits of PCI classes, as NCCL and RCCL compare them. Links end at GPUs, processors and NVSwitches.
constexpr std::string_view kDisplayClass = "0x03", kAcceleratorClass = "0x12", kNetworkClass = "0x02",
                           kProcessorClass = "0x068001";

struct WrongXml {
  std::string text;
};

// The host (-1 - its number) and the elements around a thing, the <cpu> first: the innermost that two things share says
// how near they are.
using Path = std::vector<std::ptrdiff_t>;

std::string lower(const char* text) {
  std::string s = text;
  for (char& c : s) c = char(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

// One form for all ways to write an address: "0000:1b:00.0", and "00000000:1B:00.0" as drivers say it.
std::string address(const char* busid) {
  std::string s = lower(busid);
  std::erase_if(s, [](char c) { return c == ':' || c == '.'; });
  return s.substr(std::min(s.find_first_not_of('0'), s.size()));
}

bool is_gpu(std::string_view pci_class) {
  return pci_class.starts_with(kDisplayClass) || pci_class.starts_with(kAcceleratorClass);
}

bool has_element(const xml_node& e) {
  return bool(e.find_child([](const xml_node& child) { return child.type() == pugi::node_element; }));
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Description read() {
    pugi::xml_document document;
    const auto parsed = document.load_buffer(text_.data(), text_.size());
    if (!parsed) fail(parsed.offset, fmt::format("is not XML: {}", parsed.description()));
    const xml_node system = document.document_element();
    if (system.name() != std::string_view("system"))
      fail(system.offset_debug(), fmt::format("found <{}>, expected <system>", system.name()));
    for (xml_node after = system.next_sibling(); after; after = after.next_sibling())
      if (after.type() == pugi::node_element)
        fail(after.offset_debug(),
             fmt::format("found <{}> after </system>; a file describes one <system>", after.name()));
    for (const xml_node cpu : system.children("cpu")) read_cpu(cpu);
    take_bare();
    if (gpus_.empty() && ports_.empty())
      fail(system.offset_debug(),
           "no <pci> inside a <cpu> has a <gpu>, a <net>, or the class of a GPU or NIC; the file that NCCL writes with "
           "NCCL_TOPO_DUMP_FILE has them");
    sort_by_node();
    join_islands();
    assign_nics();
    for (Gpu& g : gpus_) d_.devices.push_back(std::move(g.device));
    return std::move(d_);
  }

 private:
  struct Gpu {
    Device device;
    Path path;
    xml_node element;
  };
  struct Port {
    Nic nic;
    std::vector<Path> places;
  };
  // A <pci> that holds nothing.
  struct Bare {
    xml_node element;
    int node, numa;
    Path path;
  };

  [[noreturn]] void fail(std::ptrdiff_t offset, const std::string& what) const {
    const auto end = text_.begin() + std::clamp<std::ptrdiff_t>(offset, 0, std::ptrdiff_t(text_.size()));
    throw WrongXml{fmt::format("{}:{}: {}", file_, 1 + std::count(text_.begin(), end, '\n'), what)};
  }

  // A whole number; `otherwise` where the attribute is absent.
  int integer(const xml_node& e, const char* name, int otherwise) const {
    const pugi::xml_attribute a = e.attribute(name);
    if (!a) return otherwise;
    const std::string_view value = a.value();
    const std::size_t skip = value.starts_with("0x") && !value.starts_with("0x-") ? 2 : 0;
    const char* last = value.data() + value.size();
    int number = 0;
    const auto [end, error] = std::from_chars(value.data() + skip, last, number, skip == 0 ? 10 : 16);
    if (error != std::errc() || end != last)
      fail(e.offset_debug(), fmt::format("<{}> has {}=\"{}\", expected a whole number", e.name(), name, a.value()));
    return number;
  }

  void read_cpu(const xml_node& cpu) {
    // One file may describe several hosts (multi-node NVLink): each has its hash.
    const auto [host, unseen] = nodes_.try_emplace(cpu.attribute("host_hash").value(), d_.nodes);
    if (unseen) ++d_.nodes;
    Path path = {-1 - std::ptrdiff_t(host->second)};
    read_inside(cpu, host->second, integer(cpu, "numaid", -1), path);
  }

  void read_inside(const xml_node& parent, int node, int numa, Path& path) {
    if (path.size() > kDepthMax) fail(parent.offset_debug(), "is nested more than 64 deep");
    path.push_back(elements_++);
    for (const xml_node e : parent.children()) {
      const std::string_view name = e.name();
      if (gpus_.size() + ports_.size() + bare_.size() > kThingsMax)
        fail(e.offset_debug(), "more than 16384 GPUs and network ports");
      if (name == "pci" && !has_element(e))
        bare_.push_back({e, node, std::max(numa, -1), path});
      else if (name == "pci" || name == "nic")
        read_inside(e, node, numa, path);
      else if (name == "gpu")
        add_gpu(e, parent, node, numa, path);
      else if (name == "net")
        add_port(e, node, numa, path);
    }
    path.pop_back();
  }

  // Several <gpu> in one <pci> are parts of one GPU, or ranks that share it.
  void add_gpu(const xml_node& e, const xml_node& pci, int node, int numa, const Path& path) {
    const std::string busid = lower(pci.attribute("busid").value());
    if (busid.empty()) fail(pci.offset_debug(), fmt::format("<{}> around <gpu> has no busid", pci.name()));
    const auto [first, unseen] = gpu_at_.try_emplace({node, address(busid.c_str())}, gpus_.size());
    if (!unseen && gpus_[first->second].path != path)
      fail((e ? e : pci).offset_debug(), fmt::format("a second GPU at busid \"{}\" of one host", busid));
    Gpu& g = gpus_.emplace_back();
    g.device.kind = GCCL_DEVICE_GPU;
    g.device.node = node;
    g.device.numa = std::max(numa, -1);
    g.device.rank = std::max(integer(e, "rank", -1), -1);
    g.device.name = busid;
    g.path = path;
    g.element = e;
  }

  // A port that GPUs of several NUMA nodes use, such as a virtual one, stands below the <cpu> of each.
  void add_port(const xml_node& e, int node, int numa, const Path& path) {
    if (integer(e, "net", 1) == 0) return;  // a part of another one: NCCL has fused them
    const pugi::xml_attribute says = e.attribute("speed");
    const int speed = integer(e, "speed", 0);
    Nic nic = {.node = node,
               .index = integer(e, "dev", -1),
               .numa = std::max(numa, -1),
               .bandwidth_GBps = says ? (speed > 0 ? speed : kUnknownSpeedMbps) / kMbpsPerGBps : 0,
               .name = e.attribute("name").value()};
    if (nic.index >= 0) {
      const auto [known, unseen] = port_at_.try_emplace({node, nic.index, nic.name}, ports_.size());
      if (!unseen) {
        Port& port = ports_[known->second];
        if (port.nic.numa != nic.numa) port.nic.numa = -1;
        port.places.push_back(path);
        return;
      }
    }
    ports_.push_back({std::move(nic), {path}});
  }

  // Where no GPU of the file has its <gpu>, the bare ones are the GPUs; likewise the NICs. Beside others a bare one is
  // a device that NCCL has not used.
  void take_bare() {
    const bool gpus = gpus_.empty(), nics = ports_.empty();
    for (const Bare& b : bare_) {
      const std::string_view pci_class = b.element.attribute("class").value();
      Path path = b.path;
      path.push_back(elements_++);
      if (gpus && is_gpu(pci_class))
        add_gpu({}, b.element, b.node, b.numa, path);
      else if (nics && pci_class.starts_with(kNetworkClass))
        ports_.push_back(
            {{.node = b.node, .index = -1, .numa = b.numa, .name = lower(b.element.attribute("busid").value())},
             {path}});
    }
  }

  // Brings hosts whose <cpu>s alternate in the file into order, and numbers ports that have no `dev`, or that of
  // another port, in file order.
  void sort_by_node() {
    std::stable_sort(gpus_.begin(), gpus_.end(),
                     [](const Gpu& a, const Gpu& b) { return a.device.node < b.device.node; });
    gpu_at_.clear();
    for (std::size_t i = 0; i < gpus_.size(); ++i)
      gpu_at_.try_emplace({gpus_[i].device.node, address(gpus_[i].device.name.c_str())}, i);
    std::set<std::pair<int, int>> taken;  // node and index
    for (Port& p : ports_)
      if (p.nic.index >= 0 && !taken.insert({p.nic.node, p.nic.index}).second) p.nic.index = -1;
    std::vector<int> next(std::size_t(d_.nodes), 0);
    for (Port& p : ports_) {
      if (p.nic.index >= 0) continue;
      int& free = next[std::size_t(p.nic.node)];
      while (taken.count({p.nic.node, free}) != 0) ++free;
      p.nic.index = free++;
    }
    std::stable_sort(ports_.begin(), ports_.end(), [](const Port& a, const Port& b) {
      return std::pair(a.nic.node, a.nic.index) < std::pair(b.nic.node, b.nic.index);
    });
    for (const Port& p : ports_) d_.nics.push_back(p.nic);
  }

  // GPUs linked to one another, and those linked to NVSwitches. As in NCCL these are one, over all hosts: it puts
  // several into one file only where NVLink joins them.
  void join_islands() {
    const std::size_t nvswitch = gpus_.size();
    Islands islands(gpus_.size() + 1);
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const int node = gpus_[i].device.node;
      islands.join(i, gpu_at_.at({node, address(gpus_[i].device.name.c_str())}));
      for (const xml_node link : gpus_[i].element.children()) {
        const bool nvlink = link.name() == std::string_view("nvlink");
        if (!nvlink && link.name() != std::string_view("xgmi")) continue;
        const std::string to = lower(link.attribute("tclass").value());
        if (to.starts_with(kProcessorClass)) continue;
        const auto peer = gpu_at_.find({node, address(link.attribute("target").value())});
        if (peer != gpu_at_.end())
          islands.join(i, peer->second);
        else if (nvlink && !is_gpu(to))
          islands.join(i, nvswitch);
      }
    }
    int count;
    const std::vector<int> numbers = islands.numbers(gpus_.size(), &count);
    for (std::size_t i = 0; i < gpus_.size(); ++i) gpus_[i].device.island = numbers[i];
  }

  // Each GPU gets the NIC that shares most with it, of several such the fastest; where those are several, too, the GPUs
  // that they are nearest to take turns.
  void assign_nics() {
    std::map<std::ptrdiff_t, std::vector<std::size_t>> inside;  // by element: the fastest ports inside it
    for (std::size_t i = 0; i < ports_.size(); ++i)
      for (const Path& place : ports_[i].places)
        for (const std::ptrdiff_t element : place) {
          std::vector<std::size_t>& fastest = inside[element];
          const double best = fastest.empty() ? 0 : ports_[fastest.front()].nic.bandwidth_GBps;
          const double speed = ports_[i].nic.bandwidth_GBps;
          if (!fastest.empty() && (speed < best || fastest.back() == i)) continue;
          if (speed > best) fastest.clear();
          fastest.push_back(i);
        }
    std::map<std::vector<std::size_t>, std::size_t> turns;
    for (Gpu& g : gpus_) {
      auto nearest = inside.end();
      for (auto e = g.path.rbegin(); e != g.path.rend() && nearest == inside.end(); ++e) nearest = inside.find(*e);
      if (nearest == inside.end()) continue;
      const std::vector<std::size_t>& choice = nearest->second;
      g.device.nic = int(choice[turns[choice]++ % choice.size()]);
    }
  }

  std::string_view text_;
  const std::string& file_;
  Description d_;
  std::map<std::string, int> nodes_;  // by host_hash
  std::ptrdiff_t elements_ = 0;
  std::vector<Gpu> gpus_;
  std::vector<Port> ports_;
  std::vector<Bare> bare_;
  std::map<std::pair<int, std::string>, std::size_t> gpu_at_;         // by node and address: the first
  std::map<std::tuple<int, int, std::string>, std::size_t> port_at_;  // by node, `dev` and name
};

}  // namespace

Status read_nccl_xml(std::string_view text, const std::string& file, Description* out) {
  try {
    *out = Reader(text, file).read();
    return {};
  } catch (const WrongXml& w) {
    return Status::error(w.text, GCCL_ERR_INVALID_ARGUMENT);
  }
}

}  // namespace gccl::topology
