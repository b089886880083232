// The network of one world on ns-3: in each cell an 802.11n access point and its moving stations,
// between each EN and SN a chain of point-to-point links. Everything that travels is real packets.
//
// The world itself (queues, caches, decisions) is not here. It hands over messages at its own time
// and asks what has arrived until then; both clocks move together. One simulator a process.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

using namespace ns3;

extern "C" {

// Mirrored field by field in `library.py`.
struct Settings
{
    int32_t ens, sns, ues, hops;
    int32_t packet_bytes; // of IP, on the backhaul
    int32_t channel_mhz, mcs, short_guard, rts, ampdu_bytes;
    int32_t datagram_bytes; // UDP payload on the air
    int32_t queue_packets;
    int32_t tcp;
    int32_t rate_steps;
    double hop_delay_ms, queue_ms, rate_period_ms;
    uint64_t run;
};

// A UE starts at (x, y) metres from its EN and moves along x; from `turn_ms` on it turns round
// every `crossing_ms` (0: never).
struct Walk
{
    double x, y, metres_per_s, turn_ms, crossing_ms;
};

// The records POST and DELIVERY of `cosmo.world.records`.
struct Post
{
    double bytes;
    int32_t what, subject; // the world's own names, given back on delivery
    int32_t place;         // EN * UEs + UE, or EN * SNs + SN
    int32_t uplink;        // 1: from a UE to its EN; 0: between an EN and an SN
    int32_t down;          // on a link: from the SN to the EN
};

struct Delivery
{
    double time_ms;
    int32_t what, subject;
};

} // extern "C"

namespace
{

constexpr uint16_t PORT = 9;
constexpr double START_S = 2.0; // the world's time 0: stations are associated, addresses known
constexpr int64_t NS_PER_MS = 1000000;
constexpr uint32_t HEADER_BYTES = 8; // message and its length, at the head of every datagram
constexpr uint32_t FRAMING = 28;     // IP and UDP

// One end of a way that messages take. Datagrams of a message may be lost, not reordered.
struct Way
{
    Ptr<Socket> out;
    uint32_t most; // payload of a datagram
};

struct Message
{
    int32_t what, subject;
    uint32_t bytes, arrived;
};

// A TCP connection carries messages one after the other: a message is there when so many bytes are.
struct Stream
{
    std::deque<std::pair<uint64_t, uint32_t>> ends; // (bytes so far, message)
    uint64_t promised = 0, sent = 0, arrived = 0;
    Ptr<Socket> out;
};

int64_t
ToNs(double ms)
{
    return static_cast<int64_t>(std::floor(ms * NS_PER_MS));
}

class Network
{
  public:
    Network(const Settings& settings, const double* up, const double* down, const double* factors,
            const Walk* walks);
    ~Network();

    void Send(const Post& post);
    // On until a message has arrived or the time is reached.
    void Run(double until_ms);

    double Clock() const
    {
        return static_cast<double>(Simulator::Now().GetNanoSeconds() - StartNs()) / NS_PER_MS;
    }

    std::deque<Delivery> arrived;

  private:
    static int64_t StartNs()
    {
        return static_cast<int64_t>(START_S * 1e9);
    }

    void BuildCell(int en, const Walk* walks);
    void BuildChain(int en, int sn, double up_mbps, double down_mbps, const double* up_factors,
                    const double* down_factors);
    void WarmUp();
    void OpenStream(int place);
    void Receive(Ptr<Socket> socket);
    void Complete(uint32_t name);
    void Accept(Ptr<Socket> socket, const Address& from);
    void ReceiveStream(Ptr<Socket> socket);
    void Push(Stream* stream);

    Settings m_set;
    NodeContainer m_ens, m_sns;
    std::vector<Ipv4Address> m_accessAddress;    // of the EN in its cell
    std::vector<Ptr<Node>> m_ues;                // EN * UEs + UE
    std::vector<Way> m_uplink, m_up, m_down;
    std::map<uint32_t, Message> m_messages;      // on their way
    std::map<Ipv4Address, Stream> m_streams;     // TCP, by the UE's address
    std::vector<Ipv4Address> m_ueAddress;
    uint32_t m_next = 0;
    int m_chains = 0;
    int64_t m_stream = 1; // of random numbers
    std::vector<uint8_t> m_buffer;
    EventId m_stop;
};

void
Bind(Ptr<Socket> socket)
{
    if (socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT)) != 0)
    {
        throw std::runtime_error("a socket could not be bound");
    }
}

// Walks on from now, and turns round after `turn`, then every `crossing` (0: never).
void
WalkOn(Ptr<ConstantVelocityMobilityModel> model, double metres_per_s, Time turn, Time crossing)
{
    model->SetVelocity(Vector(metres_per_s, 0.0, 0.0));
    if (crossing.IsStrictlyPositive())
    {
        Simulator::Schedule(turn, &WalkOn, model, -metres_per_s, crossing, crossing);
    }
}

void
SetRate(Ptr<PointToPointNetDevice> device, double mbps)
{
    device->SetDataRate(DataRate(static_cast<uint64_t>(std::llround(mbps * 1e6))));
}

Network::Network(const Settings& settings, const double* up, const double* down,
                 const double* factors, const Walk* walks)
    : m_set(settings), m_buffer(65536)
{
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(settings.run);
    // Addresses are learned once, and nothing is dropped meanwhile.
    Config::SetDefault("ns3::ArpCache::AliveTimeout", TimeValue(Days(365)));
    Config::SetDefault("ns3::ArpCache::PendingQueueSize", UintegerValue(10000));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize",
                       QueueSizeValue(QueueSize(PACKETS, settings.queue_packets)));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(MicroSeconds(
        std::llround(settings.queue_ms * 1000))));
    Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold",
                       UintegerValue(settings.rts ? 0 : 4692480));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 22));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 22));
    m_ens.Create(settings.ens);
    m_sns.Create(settings.sns);
    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.Install(m_ens);
    internet.Install(m_sns);
    m_stream += internet.AssignStreams(m_ens, m_stream);
    m_stream += internet.AssignStreams(m_sns, m_stream);
    for (int en = 0; en < settings.ens; ++en)
    {
        BuildCell(en, walks);
    }
    const int links = settings.ens * settings.sns;
    for (int link = 0; link < links; ++link)
    {
        const int steps = settings.rate_steps;
        BuildChain(link / settings.sns, link % settings.sns, up[link], down[link],
                   factors + link * steps, factors + (links + link) * steps);
    }
    for (auto nodes : {&m_ens, &m_sns})
    {
        for (uint32_t k = 0; k < nodes->GetN(); ++k)
        {
            auto socket = Socket::CreateSocket(nodes->Get(k), UdpSocketFactory::GetTypeId());
            socket->SetAttribute("RcvBufSize", UintegerValue(1 << 30));
            Bind(socket);
            socket->SetRecvCallback(MakeCallback(&Network::Receive, this));
        }
    }
    WarmUp();
}

Network::~Network()
{
    arrived.clear();
    m_uplink.clear();
    m_up.clear();
    m_down.clear();
    m_streams.clear();
    m_ues.clear();
    m_ens = NodeContainer();
    m_sns = NodeContainer();
    m_stop = EventId();
    Simulator::Destroy();
    Config::Reset();
    Mac48Address::ResetAllocationIndex();
    Ipv4AddressGenerator::Reset();
}

void
Network::BuildCell(int en, const Walk* walks)
{
    NodeContainer stations;
    stations.Create(m_set.ues);
    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.Install(stations);
    m_stream += internet.AssignStreams(stations, m_stream);

    // A channel of its own: cells do not hear one another.
    YansWifiPhyHelper phy;
    phy.SetChannel(YansWifiChannelHelper::Default().Create());
    phy.Set("ChannelSettings",
            StringValue("{0, " + std::to_string(m_set.channel_mhz) + ", BAND_5GHZ, 0}"));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211n);
    const std::string mode = "HtMcs" + std::to_string(m_set.mcs);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue(mode),
                                 "ControlMode", StringValue("HtMcs0"));
    wifi.ConfigHtOptions("ShortGuardIntervalSupported", BooleanValue(m_set.short_guard != 0));
    WifiMacHelper mac;
    const Ssid ssid("cell-" + std::to_string(en));
    const UintegerValue ampdu(m_set.ampdu_bytes);
    mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(ssid), "BE_MaxAmpduSize", ampdu);
    NetDeviceContainer devices = wifi.Install(phy, mac, m_ens.Get(en));
    mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(ssid), "BE_MaxAmpduSize", ampdu);
    devices.Add(wifi.Install(phy, mac, stations));
    m_stream += wifi.AssignStreams(devices, m_stream);

    MobilityHelper mobility;
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(m_ens.Get(en));
    mobility.SetMobilityModel("ns3::ConstantVelocityMobilityModel");
    mobility.Install(stations);
    for (int k = 0; k < m_set.ues; ++k)
    {
        const Walk& walk = walks[k];
        auto model = stations.Get(k)->GetObject<ConstantVelocityMobilityModel>();
        model->SetPosition(Vector(walk.x, walk.y, 0.0)); // it waits there until the world begins
        Simulator::Schedule(Seconds(START_S), &WalkOn, model, walk.metres_per_s,
                            NanoSeconds(ToNs(walk.turn_ms)), NanoSeconds(ToNs(walk.crossing_ms)));
    }

    Ipv4AddressHelper addresses;
    addresses.SetBase(Ipv4Address((10U << 24) + (static_cast<uint32_t>(en) << 16)),
                      Ipv4Mask("255.255.0.0"));
    Ipv4InterfaceContainer held = addresses.Assign(devices);
    m_accessAddress.push_back(held.GetAddress(0));
    for (int k = 0; k < m_set.ues; ++k)
    {
        m_ues.push_back(stations.Get(k));
        m_ueAddress.push_back(held.GetAddress(1 + k));
        auto socket = Socket::CreateSocket(stations.Get(k), UdpSocketFactory::GetTypeId());
        socket->Bind();
        socket->Connect(InetSocketAddress(held.GetAddress(0), PORT));
        m_uplink.push_back({socket, static_cast<uint32_t>(m_set.datagram_bytes)});
    }
}

void
Network::BuildChain(int en, int sn, double up_mbps, double down_mbps, const double* up_factors,
                    const double* down_factors)
{
    std::vector<Ptr<Node>> path{m_ens.Get(en)};
    NodeContainer relays;
    relays.Create(m_set.hops - 1);
    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.Install(relays);
    m_stream += internet.AssignStreams(relays, m_stream);
    for (uint32_t k = 0; k < relays.GetN(); ++k)
    {
        path.push_back(relays.Get(k));
    }
    path.push_back(m_sns.Get(sn));

    PointToPointHelper link;
    link.SetDeviceAttribute("Mtu", UintegerValue(m_set.packet_bytes));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(ToNs(m_set.hop_delay_ms))));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize",
                  QueueSizeValue(QueueSize(PACKETS, 4000000000U)));
    Ipv4AddressHelper addresses;
    std::vector<NetDeviceContainer> hops;
    std::vector<Ipv4InterfaceContainer> held;
    for (size_t k = 0; k + 1 < path.size(); ++k)
    {
        NetDeviceContainer ends = link.Install(path[k], path[k + 1]);
        // 172.16.0.0/12 in nets of four addresses.
        addresses.SetBase(Ipv4Address((172U << 24) + (16U << 16) + 4U * m_chains++),
                          Ipv4Mask("255.255.255.252"));
        held.push_back(addresses.Assign(ends));
        TrafficControlHelper().Uninstall(ends); // one FIFO, nothing in front of it (R13)
        for (int side = 0; side < 2; ++side)
        {
            auto device = DynamicCast<PointToPointNetDevice>(ends.Get(side));
            const double nominal = side == 0 ? up_mbps : down_mbps;
            const double* factors = side == 0 ? up_factors : down_factors;
            SetRate(device, m_set.rate_steps ? nominal * factors[0] : nominal);
            for (int step = 1; step < m_set.rate_steps; ++step)
            {
                const int64_t at = StartNs() + ToNs(step * m_set.rate_period_ms);
                Simulator::Schedule(NanoSeconds(at), &SetRate, device, nominal * factors[step]);
            }
        }
        hops.push_back(ends);
    }
    const Ipv4Address near = held.front().GetAddress(0), far = held.back().GetAddress(1);
    Ipv4StaticRoutingHelper routing;
    for (size_t k = 0; k < path.size(); ++k)
    {
        auto ip = path[k]->GetObject<Ipv4>();
        auto table = routing.GetStaticRouting(ip);
        if (k + 1 < path.size())
        {
            table->AddHostRouteTo(far, held[k].GetAddress(1),
                                  ip->GetInterfaceForDevice(hops[k].Get(0)));
        }
        if (k > 0)
        {
            table->AddHostRouteTo(near, held[k - 1].GetAddress(0),
                                  ip->GetInterfaceForDevice(hops[k - 1].Get(1)));
        }
    }
    const uint32_t most = m_set.packet_bytes - FRAMING;
    auto end = [most](Ptr<Node> node, Ipv4Address to) {
        auto socket = Socket::CreateSocket(node, UdpSocketFactory::GetTypeId());
        socket->Bind();
        socket->Connect(InetSocketAddress(to, PORT));
        return Way{socket, most};
    };
    m_up.push_back(end(path.front(), far));
    m_down.push_back(end(path.back(), near));
}

void
Network::WarmUp()
{
    // Stations one after the other learn the EN's address and agree with it on aggregates, which
    // takes longer than a task may.
    for (size_t place = 0; place < m_uplink.size(); ++place)
    {
        for (int k = 0; k < 4; ++k)
        {
            const int within = static_cast<int>(place) % m_set.ues;
            const Time at = Seconds(1.0) + MicroSeconds(500000LL * (4 * within + k) /
                                                        (4 * m_set.ues));
            Simulator::Schedule(at, [this, place] {
                m_uplink[place].out->Send(Create<Packet>(m_uplink[place].most));
            });
        }
        if (m_set.tcp)
        {
            const int within = static_cast<int>(place) % m_set.ues;
            Simulator::Schedule(Seconds(1.6) + MicroSeconds(200000LL * within / m_set.ues),
                                &Network::OpenStream, this, static_cast<int>(place));
        }
    }
    if (m_set.tcp)
    {
        for (uint32_t en = 0; en < m_ens.GetN(); ++en)
        {
            auto socket = Socket::CreateSocket(m_ens.Get(en), TcpSocketFactory::GetTypeId());
            Bind(socket);
            socket->Listen();
            socket->SetAcceptCallback(
                MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                MakeCallback(&Network::Accept, this));
        }
    }
    m_stop = Simulator::Stop(Seconds(START_S));
    Simulator::Run();
}

void
Network::OpenStream(int place)
{
    Stream& stream = m_streams[m_ueAddress[place]];
    stream.out = Socket::CreateSocket(m_ues[place], TcpSocketFactory::GetTypeId());
    stream.out->Bind();
    stream.out->Connect(InetSocketAddress(m_accessAddress[place / m_set.ues], PORT));
    stream.out->SetSendCallback(Callback<void, Ptr<Socket>, uint32_t>(
        [this, place](Ptr<Socket>, uint32_t) { Push(&m_streams[m_ueAddress[place]]); }));
}

void
Network::Accept(Ptr<Socket> socket, const Address&)
{
    socket->SetRecvCallback(MakeCallback(&Network::ReceiveStream, this));
}

void
Network::ReceiveStream(Ptr<Socket> socket)
{
    Address peer;
    socket->GetPeerName(peer);
    Stream& stream = m_streams[InetSocketAddress::ConvertFrom(peer).GetIpv4()];
    while (Ptr<Packet> packet = socket->Recv())
    {
        if (packet->GetSize() == 0)
        {
            break;
        }
        stream.arrived += packet->GetSize();
    }
    while (!stream.ends.empty() && stream.ends.front().first <= stream.arrived)
    {
        Complete(stream.ends.front().second);
        stream.ends.pop_front();
    }
}

void
Network::Push(Stream* stream)
{
    while (stream->sent < stream->promised)
    {
        const uint32_t room = stream->out->GetTxAvailable();
        const uint64_t left = stream->promised - stream->sent;
        const uint32_t size = static_cast<uint32_t>(std::min<uint64_t>(left, room));
        const int taken = size ? stream->out->Send(Create<Packet>(size)) : -1;
        if (taken <= 0)
        {
            return; // it calls back when there is room
        }
        stream->sent += taken;
    }
}

void
Network::Send(const Post& post)
{
    const uint32_t name = m_next++;
    const uint32_t bytes = static_cast<uint32_t>(std::ceil(post.bytes));
    m_messages[name] = {post.what, post.subject, bytes, 0};
    if (post.uplink && m_set.tcp)
    {
        Stream& stream = m_streams[m_ueAddress[post.place]];
        stream.promised += bytes;
        stream.ends.emplace_back(stream.promised, name);
        Push(&stream);
        return;
    }
    const auto& ways = post.uplink ? m_uplink : post.down ? m_down : m_up;
    const Way& way = ways[post.place];
    std::memcpy(m_buffer.data(), &name, 4);
    std::memcpy(m_buffer.data() + 4, &bytes, 4);
    for (uint32_t sent = 0; sent < bytes;)
    {
        // A message shorter than the header still carries it.
        const uint32_t size = std::min(bytes - sent, way.most);
        way.out->Send(Create<Packet>(m_buffer.data(), std::max(size, HEADER_BYTES)));
        sent += size;
    }
}

void
Network::Receive(Ptr<Socket> socket)
{
    while (Ptr<Packet> packet = socket->Recv())
    {
        if (Simulator::Now() < Seconds(START_S))
        {
            continue; // of the warm-up
        }
        uint8_t head[HEADER_BYTES];
        packet->CopyData(head, HEADER_BYTES);
        uint32_t name;
        std::memcpy(&name, head, 4);
        auto found = m_messages.find(name);
        if (found == m_messages.end())
        {
            continue;
        }
        found->second.arrived += packet->GetSize();
        if (found->second.arrived >= found->second.bytes)
        {
            Complete(name);
        }
    }
}

void
Network::Complete(uint32_t name)
{
    const Message& message = m_messages.at(name);
    arrived.push_back({Clock(), message.what, message.subject});
    m_messages.erase(name);
    Simulator::Stop();
}

void
Network::Run(double until_ms)
{
    const int64_t until = StartNs() + ToNs(until_ms);
    if (until <= Simulator::Now().GetNanoSeconds())
    {
        return;
    }
    m_stop.Cancel();
    m_stop = Simulator::Stop(NanoSeconds(until) - Simulator::Now());
    Simulator::Run();
}

Network* g_network = nullptr; // never destroyed at exit, when ns-3's own globals may be gone
std::string g_error;

} // namespace

extern "C" {

const char*
cosmo_error()
{
    return g_error.c_str();
}

void
cosmo_end()
{
    delete g_network;
    g_network = nullptr;
}

// A new network at the world's time 0; the one before is gone. 0 if all went well.
int
cosmo_begin(const Settings* settings, const double* up, const double* down, const double* factors,
            const Walk* walks)
{
    cosmo_end();
    try
    {
        g_network = new Network(*settings, up, down, factors, walks);
    }
    catch (const std::exception& error)
    {
        g_error = error.what();
        return -1;
    }
    return 0;
}

// Hands over messages at `now_ms`, runs on until one has arrived or the time is reached, and tells
// up to `room` arrivals: their number, or -1. `clock_ms` is how far it has come.
int
cosmo_exchange(const Post* posts, int count, double now_ms, double until_ms, Delivery* told,
               int room, double* clock_ms)
{
    if (!g_network)
    {
        g_error = "there is no network";
        return -1;
    }
    try
    {
        auto& arrived = g_network->arrived;
        if (arrived.empty())
        {
            g_network->Run(now_ms); // it lags behind when nothing is under way
        }
        for (int k = 0; k < count; ++k)
        {
            g_network->Send(posts[k]);
        }
        if (arrived.empty())
        {
            g_network->Run(until_ms);
        }
        int number = 0;
        for (; number < room && !arrived.empty(); ++number)
        {
            told[number] = arrived.front();
            arrived.pop_front();
        }
        *clock_ms = g_network->Clock();
        return number;
    }
    catch (const std::exception& error)
    {
        g_error = error.what();
        return -1;
    }
}

} // extern "C"
