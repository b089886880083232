// The network of one world on ns-3: in each cell an 802.11n access point and its moving stations,
// between each EN and SN a chain of point-to-point links. Everything that travels is real packets.
//
// The world itself (queues, caches, decisions) is not here. It hands over messages at its own time
// and asks what has arrived until then; both clocks move together. One simulator a process.
//
// This is the only file that is compiled, the door that `library.py` calls; it includes the others.

#include <exception>
#include <string>

#include "interface.h"
#include "network.h"

namespace
{

cosmo::Network* g_network = nullptr; // never destroyed at exit, when ns-3's globals may be gone
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
cosmo_begin(const cosmo::Settings* settings, const cosmo::Link* links, const double* factors,
            const cosmo::Walk* walks)
{
    cosmo_end();
    try
    {
        g_network = new cosmo::Network(*settings, links, factors, walks);
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
cosmo_exchange(const cosmo::Post* posts, int count, double now_ms, double until_ms,
               cosmo::Delivery* told, int room, double* clock_ms)
{
    if (!g_network)
    {
        g_error = "there is no network";
        return -1;
    }
    try
    {
        auto& arrived = g_network->Arrived();
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
        *clock_ms = cosmo::WorldNowMs();
        return number;
    }
    catch (const std::exception& error)
    {
        g_error = error.what();
        return -1;
    }
}

} // extern "C"
