// ns-3's simulator, of which a process has one, and the world's time in it.

#pragma once

#include <cmath>
#include <cstdint>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"

namespace cosmo
{

using namespace ns3;

constexpr double START_S = 2.0; // the world's time 0: stations are associated, addresses known
constexpr int64_t NS_PER_MS = 1000000;

// Whole nanoseconds, never later than the world means.
inline Time
Duration(double ms)
{
    return NanoSeconds(static_cast<int64_t>(std::floor(ms * NS_PER_MS)));
}

inline Time
AtWorldTime(double ms)
{
    return Seconds(START_S) + Duration(ms);
}

inline double
WorldNowMs()
{
    return static_cast<double>((Simulator::Now() - Seconds(START_S)).GetNanoSeconds()) / NS_PER_MS;
}

// From its making to its end the simulator is ours; afterwards it is as if nothing had been. What
// holds parts of a network must go before it.
class Simulation
{
  public:
    explicit Simulation(uint64_t run)
    {
        RngSeedManager::SetSeed(1);
        RngSeedManager::SetRun(run);
    }

    ~Simulation()
    {
        Simulator::Destroy();
        Config::Reset();
        Mac48Address::ResetAllocationIndex();
        Ipv4AddressGenerator::Reset();
    }

    Simulation(const Simulation&) = delete;
    Simulation& operator=(const Simulation&) = delete;

    // Nodes that speak IP, with random numbers of their own.
    NodeContainer CreateNodes(uint32_t count)
    {
        NodeContainer nodes;
        nodes.Create(count);
        InternetStackHelper internet;
        internet.SetIpv6StackInstall(false);
        internet.Install(nodes);
        streams += internet.AssignStreams(nodes, streams);
        return nodes;
    }

    // On until somebody calls Simulator::Stop() or the time is reached.
    void RunUntil(Time time)
    {
        m_stop.Cancel();
        m_stop = Simulator::Stop(time - Simulator::Now());
        Simulator::Run();
    }

    int64_t streams = 1; // of random numbers: the next that nobody has

  private:
    EventId m_stop;
};

} // namespace cosmo
