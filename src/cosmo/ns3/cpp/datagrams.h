// Messages as UDP datagrams, which may be lost, not reordered. Each begins with its message's name.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "messages.h"

namespace cosmo
{

constexpr uint16_t PORT = 9;
constexpr uint32_t HEADER_BYTES = 8; // message and its length, at the head of every datagram
constexpr uint32_t FRAMING = 28;     // IP and UDP

// One end of a way that messages take.
struct Way
{
    Ptr<Socket> out;
    uint32_t most; // payload of a datagram
};

inline Way
OpenWay(Ptr<Node> from, Ipv4Address to, uint32_t most)
{
    auto socket = Socket::CreateSocket(from, UdpSocketFactory::GetTypeId());
    socket->Bind();
    socket->Connect(InetSocketAddress(to, PORT));
    return {socket, most};
}

inline void
BindToPort(Ptr<Socket> socket)
{
    if (socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT)) != 0)
    {
        throw std::runtime_error("a socket could not be bound");
    }
}

class Datagrams
{
  public:
    explicit Datagrams(Messages& messages)
        : m_messages(messages), m_buffer(65536)
    {
    }

    void Listen(Ptr<Node> node)
    {
        auto socket = Socket::CreateSocket(node, UdpSocketFactory::GetTypeId());
        socket->SetAttribute("RcvBufSize", UintegerValue(1 << 30));
        BindToPort(socket);
        socket->SetRecvCallback(MakeCallback(&Datagrams::Receive, this));
    }

    void Send(const Way& way, uint32_t name, uint32_t bytes)
    {
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

  private:
    void Receive(Ptr<Socket> socket)
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            if (Simulator::Now() < Seconds(START_S))
            {
                continue; // of the warm-up
            }
            uint32_t name;
            packet->CopyData(reinterpret_cast<uint8_t*>(&name), sizeof(name));
            m_messages.Count(name, packet->GetSize());
        }
    }

    Messages& m_messages;
    std::vector<uint8_t> m_buffer;
};

} // namespace cosmo
