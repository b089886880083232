// The network of one world: cells, chains, and the messages that they carry.

#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <vector>

#include "cell.h"
#include "chain.h"
#include "datagrams.h"
#include "interface.h"
#include "messages.h"
#include "simulation.h"
#include "streams.h"

namespace cosmo
{

class Network
{
  public:
    Network(const Settings& settings, const Link* links, const double* factors, const Walk* walks)
        : m_set(settings), m_simulation(settings.run), m_datagrams(m_messages),
          m_streams(m_messages)
    {
        PrepareCells(settings);
        const NodeContainer ens = m_simulation.CreateNodes(settings.ens);
        const NodeContainer sns = m_simulation.CreateNodes(settings.sns);
        for (int en = 0; en < settings.ens; ++en)
        {
            for (const Station& each : BuildCell(settings, m_simulation, en, ens.Get(en), walks))
            {
                m_stations.push_back(each);
            }
        }
        const int steps = settings.rate_steps;
        for (int k = 0; k < settings.links; ++k)
        {
            const double* back = factors + (settings.links + k) * steps;
            m_chains.push_back(BuildChain(settings, m_simulation, links[k], ens.Get(links[k].en),
                                          sns.Get(links[k].sn),
                                          {links[k].up_mbps, factors + k * steps},
                                          {links[k].down_mbps, back}));
        }
        for (const NodeContainer& nodes : {ens, sns})
        {
            for (uint32_t k = 0; k < nodes.GetN(); ++k)
            {
                m_datagrams.Listen(nodes.Get(k));
            }
        }
        WarmUp(ens);
    }

    void Send(const Post& post)
    {
        const uint32_t bytes = static_cast<uint32_t>(std::ceil(post.bytes));
        const uint32_t name = m_messages.Add(post, bytes);
        if (post.uplink && m_set.tcp)
        {
            m_streams.Send(m_stations[post.place].address, name, bytes);
            return;
        }
        const Way& way = post.uplink ? m_stations[post.place].uplink
                         : post.down ? m_chains[post.place].down
                                     : m_chains[post.place].up;
        m_datagrams.Send(way, name, bytes);
    }

    // On until a message has arrived or the time is reached.
    void Run(double until_ms)
    {
        if (AtWorldTime(until_ms) > Simulator::Now())
        {
            m_simulation.RunUntil(AtWorldTime(until_ms));
        }
    }

    std::deque<Delivery>& Arrived()
    {
        return m_messages.arrived;
    }

  private:
    // Stations one after the other learn the EN's address, which takes longer than a task may. They
    // agree with it on aggregates when two packets wait at once: a UE's first task pays for that.
    void WarmUp(const NodeContainer& ens)
    {
        for (size_t place = 0; place < m_stations.size(); ++place)
        {
            const Station& station = m_stations[place];
            const int64_t within = static_cast<int64_t>(place) % m_set.ues;
            for (int k = 0; k < 4; ++k)
            {
                const Time at =
                    Seconds(1.0) + MicroSeconds(500000 * (4 * within + k) / (4 * m_set.ues));
                Simulator::Schedule(at, [way = station.uplink] {
                    way.out->Send(Create<Packet>(way.most));
                });
            }
            if (m_set.tcp)
            {
                Simulator::Schedule(Seconds(1.6) + MicroSeconds(200000 * within / m_set.ues),
                                    &Streams::Open, &m_streams, station.node, station.address,
                                    station.en);
            }
        }
        for (uint32_t en = 0; m_set.tcp && en < ens.GetN(); ++en)
        {
            m_streams.Listen(ens.Get(en));
        }
        m_simulation.RunUntil(AtWorldTime(0.0));
    }

    const Settings m_set;
    Simulation m_simulation; // before all that holds parts of it: it must go last
    Messages m_messages;
    Datagrams m_datagrams;
    Streams m_streams;
    std::vector<Station> m_stations; // EN * UEs + UE
    std::vector<Chain> m_chains;     // by the number of the link
};

} // namespace cosmo
