// What passes between Python and this library, laid out as both sides have agreed.

#pragma once

#include <cstdint>

namespace cosmo
{

// Mirrored field by field in `library.py`.
struct Settings
{
    int32_t ens, sns, ues, links;
    int32_t packet_bytes; // of IP, on the backhaul
    int32_t channel_mhz, mcs, short_guard, rts, ampdu_bytes;
    int32_t datagram_bytes; // UDP payload on the air
    int32_t queue_packets;
    int32_t tcp;
    int32_t rate_steps;
    double queue_ms, rate_period_ms;
    uint64_t run;
};

// Between an EN and an SN, both ways; the record LINK of `network.py`.
struct Link
{
    double up_mbps, down_mbps, hop_delay_ms;
    int32_t en, sn, hops, first_hop; // all hops of all links are counted
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
    int32_t place;         // EN * UEs + UE, or the number of the link
    int32_t uplink;        // 1: from a UE to its EN; 0: between an EN and an SN
    int32_t down;          // on a link: from the SN to the EN
};

struct Delivery
{
    double time_ms;
    int32_t what, subject;
};

} // namespace cosmo
