// The backhaul between an EN and an SN: point-to-point links, with relays where they meet.

#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include "datagrams.h"
#include "interface.h"
#include "simulation.h"

namespace cosmo
{

struct Chain
{
    Way up, down;
};

// Of one direction; the factors of all steps, if it changes.
struct Rate
{
    double mbps;
    const double* factors;
};

inline void
SetRate(Ptr<PointToPointNetDevice> device, double mbps)
{
    device->SetDataRate(DataRate(static_cast<uint64_t>(std::llround(mbps * 1e6))));
}

inline void
FollowRate(const Settings& settings, Ptr<NetDevice> end, Rate rate)
{
    auto device = DynamicCast<PointToPointNetDevice>(end);
    SetRate(device, settings.rate_steps ? rate.mbps * rate.factors[0] : rate.mbps);
    for (int step = 1; step < settings.rate_steps; ++step)
    {
        Simulator::Schedule(AtWorldTime(step * settings.rate_period_ms), &SetRate, device,
                            rate.mbps * rate.factors[step]);
    }
}

// Each node of the path knows the way to both of its ends.
inline void
SetRoutes(const std::vector<Ptr<Node>>& path, const std::vector<NetDeviceContainer>& hops,
          const std::vector<Ipv4InterfaceContainer>& held)
{
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
}

inline Chain
BuildChain(const Settings& settings, Simulation& simulation, const Link& between, Ptr<Node> en,
           Ptr<Node> sn, Rate up, Rate down)
{
    const NodeContainer relays = simulation.CreateNodes(between.hops - 1);
    std::vector<Ptr<Node>> path{en};
    path.insert(path.end(), relays.Begin(), relays.End());
    path.push_back(sn);

    PointToPointHelper link;
    link.SetDeviceAttribute("Mtu", UintegerValue(settings.packet_bytes));
    link.SetChannelAttribute("Delay", TimeValue(Duration(between.hop_delay_ms)));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize",
                  QueueSizeValue(QueueSize(PACKETS, 4000000000U)));
    std::vector<NetDeviceContainer> hops;
    std::vector<Ipv4InterfaceContainer> held;
    for (int k = 0; k < between.hops; ++k)
    {
        const NetDeviceContainer ends = link.Install(path[k], path[k + 1]);
        // 172.16.0.0/12 in nets of four addresses.
        const uint32_t net = 4U * (between.first_hop + k);
        Ipv4AddressHelper addresses(Ipv4Address((172U << 24) + (16U << 16) + net),
                                    Ipv4Mask("255.255.255.252"));
        held.push_back(addresses.Assign(ends));
        TrafficControlHelper().Uninstall(ends); // one FIFO, nothing in front of it (R13)
        FollowRate(settings, ends.Get(0), up);
        FollowRate(settings, ends.Get(1), down);
        hops.push_back(ends);
    }
    SetRoutes(path, hops, held);
    const uint32_t most = settings.packet_bytes - FRAMING;
    return {OpenWay(en, held.back().GetAddress(1), most),
            OpenWay(sn, held.front().GetAddress(0), most)};
}

} // namespace cosmo
