// The memory of a reply during its rewriting, by the maximum resident memory of this process.

import Foundation
import HostileMail
import InternetMessage

/// Plays the messages made to be slow, in two sizes. Prints the octets that a reply needs for each
/// of its own, including the body in memory, and the octets that any reply needs. With
/// MALLOC_MMAP_THRESHOLD_=60000 in the environment, memory is released as in the service.
func measureMemory(_ world: RelayBenchFixture, isWanted: (String) -> Bool) {
    let sizes = [2_000_000, 8_000_000]
    for index in Hostile.all(size: 1_000, reverse: world.reverse).indices {
        let name = Hostile.all(size: 1_000, reverse: world.reverse)[index].name
        guard isWanted("hostile " + name) else { continue }
        var outcome = ""
        let peaks = sizes.map { size in
            let item = Hostile.all(size: size, reverse: world.reverse)[index]
            let header = BenchCorpus.header(
                HeaderSection(item.header), author: RelayBenchFixture.inbox,
                recipient: world.reverse)
            let body = item.body
            return (
                octets: Double(body.count),
                peak: Double(
                    peak {
                        outcome = world.play(
                            from: RelayBenchFixture.inbox, to: world.reverse, header: header,
                            body: body)
                    })
            )
        }
        let slope = (peaks[1].peak - peaks[0].peak) / max(1, peaks[1].octets - peaks[0].octets)
        print(
            String(
                format: "%6.2f octets for each, and %6.2f MB  %@ (%@)", slope,
                (peaks[0].peak - slope * peaks[0].octets) / 1e6,
                name, outcome))
    }
}

/// Octets by which the maximum resident memory during some work exceeds that before it.
private func peak(_ work: () -> Void) -> Int {
    func status(_ field: String) -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        return text.split(separator: "\n").first { $0.hasPrefix(field + ":") }.flatMap {
            Int($0.filter(\.isNumber))
        } ?? 0
    }
    work()
    let before = status("VmRSS")
    try? "5".write(toFile: "/proc/self/clear_refs", atomically: false, encoding: .utf8)
    work()
    return (status("VmHWM") - before) * 1024
}
