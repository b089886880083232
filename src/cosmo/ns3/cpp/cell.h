// A cell: an EN as an 802.11n access point, and the UEs that walk around it as its stations.

#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "ns3/mobility-module.h"
#include "ns3/wifi-module.h"

#include "datagrams.h"
#include "interface.h"
#include "simulation.h"

namespace cosmo
{

struct Station
{
    Ptr<Node> node;
    Ipv4Address address, en;
    Way uplink;
};

// What holds for every device of every cell; to be called before there is one.
inline void
PrepareCells(const Settings& settings)
{
    // Addresses are learned once, and nothing is dropped meanwhile.
    Config::SetDefault("ns3::ArpCache::AliveTimeout", TimeValue(Days(365)));
    Config::SetDefault("ns3::ArpCache::PendingQueueSize", UintegerValue(10000));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize",
                       QueueSizeValue(QueueSize(PACKETS, settings.queue_packets)));
    const Time longest = MicroSeconds(std::llround(settings.queue_ms * 1000));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(longest));
    Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold",
                       UintegerValue(settings.rts ? 0 : 4692480));
}

// Walks on from now, and turns round after `turn`, then every `crossing` (0: never).
inline void
WalkOn(Ptr<ConstantVelocityMobilityModel> model, double metres_per_s, Time turn, Time crossing)
{
    model->SetVelocity(Vector(metres_per_s, 0.0, 0.0));
    if (crossing.IsStrictlyPositive())
    {
        Simulator::Schedule(turn, &WalkOn, model, -metres_per_s, crossing, crossing);
    }
}

inline void
Place(Ptr<Node> en, const NodeContainer& stations, const Walk* walks)
{
    MobilityHelper mobility;
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(en);
    mobility.SetMobilityModel("ns3::ConstantVelocityMobilityModel");
    mobility.Install(stations);
    for (uint32_t k = 0; k < stations.GetN(); ++k)
    {
        const Walk& walk = walks[k];
        auto model = stations.Get(k)->GetObject<ConstantVelocityMobilityModel>();
        model->SetPosition(Vector(walk.x, walk.y, 0.0)); // it waits there until the world begins
        Simulator::Schedule(AtWorldTime(0.0), &WalkOn, model, walk.metres_per_s,
                            Duration(walk.turn_ms), Duration(walk.crossing_ms));
    }
}

// The EN's device and those of its stations, in this order.
inline NetDeviceContainer
InstallWifi(const Settings& settings, Simulation& simulation, int number, Ptr<Node> en,
            const NodeContainer& stations)
{
    // A channel of its own: cells do not hear one another.
    YansWifiPhyHelper phy;
    phy.SetChannel(YansWifiChannelHelper::Default().Create());
    phy.Set("ChannelSettings",
            StringValue("{0, " + std::to_string(settings.channel_mhz) + ", BAND_5GHZ, 0}"));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211n);
    const std::string mode = "HtMcs" + std::to_string(settings.mcs);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue(mode),
                                 "ControlMode", StringValue("HtMcs0"));
    wifi.ConfigHtOptions("ShortGuardIntervalSupported", BooleanValue(settings.short_guard != 0));
    WifiMacHelper mac;
    const Ssid ssid("cell-" + std::to_string(number));
    const UintegerValue ampdu(settings.ampdu_bytes);
    mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(ssid), "BE_MaxAmpduSize", ampdu);
    NetDeviceContainer devices = wifi.Install(phy, mac, en);
    mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(ssid), "BE_MaxAmpduSize", ampdu);
    devices.Add(wifi.Install(phy, mac, stations));
    simulation.streams += wifi.AssignStreams(devices, simulation.streams);
    return devices;
}

inline std::vector<Station>
BuildCell(const Settings& settings, Simulation& simulation, int number, Ptr<Node> en,
          const Walk* walks)
{
    const NodeContainer nodes = simulation.CreateNodes(settings.ues);
    const NetDeviceContainer devices = InstallWifi(settings, simulation, number, en, nodes);
    Place(en, nodes, walks);
    Ipv4AddressHelper addresses;
    addresses.SetBase(Ipv4Address((10U << 24) + (static_cast<uint32_t>(number) << 16)),
                      Ipv4Mask("255.255.0.0"));
    const Ipv4InterfaceContainer held = addresses.Assign(devices);
    const Ipv4Address access = held.GetAddress(0);
    std::vector<Station> stations;
    for (int k = 0; k < settings.ues; ++k)
    {
        const Way uplink = OpenWay(nodes.Get(k), access, settings.datagram_bytes);
        stations.push_back({nodes.Get(k), held.GetAddress(1 + k), access, uplink});
    }
    return stations;
}

} // namespace cosmo
