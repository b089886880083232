// Messages of UEs on TCP connections, one after the other: one is there when so many bytes are.

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "datagrams.h"
#include "messages.h"

namespace cosmo
{

class Streams
{
  public:
    explicit Streams(Messages& messages)
        : m_messages(messages)
    {
        Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
        Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 22));
        Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 22));
    }

    void Listen(Ptr<Node> node)
    {
        auto socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        BindToPort(socket);
        socket->Listen();
        socket->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                  MakeCallback(&Streams::Accept, this));
    }

    void Open(Ptr<Node> node, Ipv4Address of, Ipv4Address to)
    {
        Stream& stream = m_streams[of];
        stream.out = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        stream.out->Bind();
        stream.out->Connect(InetSocketAddress(to, PORT));
        stream.out->SetSendCallback(Callback<void, Ptr<Socket>, uint32_t>(
            [this, of](Ptr<Socket>, uint32_t) { Push(m_streams[of]); }));
    }

    void Send(Ipv4Address of, uint32_t name, uint32_t bytes)
    {
        Stream& stream = m_streams[of];
        stream.promised += bytes;
        stream.ends.emplace_back(stream.promised, name);
        Push(stream);
    }

  private:
    struct Stream
    {
        std::deque<std::pair<uint64_t, uint32_t>> ends; // (bytes so far, message)
        uint64_t promised = 0, sent = 0, arrived = 0;
        Ptr<Socket> out;
    };

    void Push(Stream& stream)
    {
        while (stream.sent < stream.promised)
        {
            const uint32_t room = stream.out->GetTxAvailable();
            const uint64_t left = stream.promised - stream.sent;
            const uint32_t size = static_cast<uint32_t>(std::min<uint64_t>(left, room));
            const int taken = size ? stream.out->Send(Create<Packet>(size)) : -1;
            if (taken <= 0)
            {
                return; // it calls back when there is room
            }
            stream.sent += taken;
        }
    }

    void Accept(Ptr<Socket> socket, const Address&)
    {
        socket->SetRecvCallback(MakeCallback(&Streams::Receive, this));
    }

    void Receive(Ptr<Socket> socket)
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
            m_messages.Complete(stream.ends.front().second);
            stream.ends.pop_front();
        }
    }

    Messages& m_messages;
    std::map<Ipv4Address, Stream> m_streams; // by the UE's address
};

} // namespace cosmo
