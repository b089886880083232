// Messages on their way, and those that have arrived.

#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "interface.h"
#include "simulation.h"

namespace cosmo
{

class Messages
{
  public:
    // Its name for as long as it is on its way.
    uint32_t Add(const Post& post, uint32_t bytes)
    {
        m_underWay[m_next] = {post.what, post.subject, bytes, 0};
        return m_next++;
    }

    // So much of it has arrived; what nobody waits for is not counted.
    void Count(uint32_t name, uint32_t bytes)
    {
        auto found = m_underWay.find(name);
        if (found == m_underWay.end())
        {
            return;
        }
        found->second.arrived += bytes;
        if (found->second.arrived >= found->second.bytes)
        {
            Complete(name);
        }
    }

    // All of it has arrived: the world is told before anything else happens.
    void Complete(uint32_t name)
    {
        const Message& message = m_underWay.at(name);
        arrived.push_back({WorldNowMs(), message.what, message.subject});
        m_underWay.erase(name);
        Simulator::Stop();
    }

    std::deque<Delivery> arrived;

  private:
    struct Message
    {
        int32_t what, subject;
        uint32_t bytes, arrived;
    };

    std::map<uint32_t, Message> m_underWay;
    uint32_t m_next = 0;
};

} // namespace cosmo
