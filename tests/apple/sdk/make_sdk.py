"""Composes a sysroot for arm64 macOS and iOS on Linux.

libc headers and libc++ come from the ziglang package, framework headers from this folder, and the
linker's text stubs (.tbd) from the tables below: using a symbol that is not listed
is a link error.

usage: make_sdk.py TARGET_DIRECTORY NM LIBCXX_SHARED_LIBRARY...
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGETS = "[ arm64-macos, arm64-ios ]"

# Library: (version directory, symbols, Objective-C classes).
FRAMEWORKS: dict[str, tuple[str, str, str]] = {
    "CoreFoundation": (
        "A",
        """__CFConstantStringClassReference __NSArray0__ __NSDictionary0__ CFRelease
        kCFAllocatorDefault kCFBooleanTrue""",
        "NSArray NSData NSDictionary NSException NSMutableArray NSMutableDictionary NSURL",
    ),
    "Foundation": (
        "C",
        "NSClassFromString NSUnderlyingErrorKey",
        "NSError NSJSONSerialization NSNumber NSProcessInfo NSPropertyListSerialization NSString",
    ),
    "IOKit": (
        "A",
        """IOObjectRelease IORegistryEntryCreateCFProperties IOServiceGetMatchingService
        IOServiceMatching""",
        "",
    ),
    "IOSurface": (
        "A",
        """IOSurfaceCreate IOSurfaceGetAllocSize IOSurfaceGetBaseAddress IOSurfaceLock
        IOSurfaceUnlock kIOSurfaceAllocSize kIOSurfaceBytesPerElement kIOSurfaceBytesPerRow
        kIOSurfaceHeight kIOSurfaceWidth""",
        "",
    ),
    "Metal": ("A", "MTLCreateSystemDefaultDevice", ""),
    "MetalPerformanceShaders": ("A", "", ""),
    "MetalPerformanceShadersGraph": (
        "A",
        "",
        """MPSGraph MPSGraphCompilationDescriptor MPSGraphConvolution2DOpDescriptor MPSGraphDevice
        MPSGraphExecutable MPSGraphExecutableExecutionDescriptor
        MPSGraphExecutableSerializationDescriptor MPSGraphShapedType MPSGraphTensorData""",
    ),
    "Security": ("A", "SecTaskCopyValueForEntitlement SecTaskCreateFromSelf", ""),
    "UIKit": (
        "",
        "UIApplicationMain",
        "UIFont UIResponder UIScreen UITextView UIViewController UIWindow",
    ),
}
SETTINGS = {
    "CanonicalName": "macosx15.0",
    "DisplayName": "macOS 15.0",
    "MinimalDisplayName": "15.0",
    "Version": "15.0",
    "MaximumDeploymentTarget": "15.0.99",
    "DefaultDeploymentTarget": "15.0",
}
# In macOS's libc++ but not in Debian's: std::atomic waits on 64 bits there.
DARWIN_CXX = ["_ZNSt3__120__libcpp_atomic_waitEPVKvx"]
OBJC_SYMBOLS = """
    objc_msgSend objc_msgSendSuper2 objc_alloc objc_alloc_init objc_opt_new objc_opt_class
    objc_opt_isKindOfClass objc_opt_respondsToSelector objc_autoreleasePoolPush
    objc_autoreleasePoolPop objc_retain objc_release objc_autorelease objc_retainAutorelease
    objc_retainAutoreleasedReturnValue objc_claimAutoreleasedReturnValue
    objc_unsafeClaimAutoreleasedReturnValue objc_autoreleaseReturnValue
    objc_retainAutoreleaseReturnValue objc_storeStrong objc_retainBlock objc_begin_catch
    objc_end_catch objc_exception_throw objc_exception_rethrow objc_terminate objc_ehtype_vtable
    objc_enumerationMutation objc_getProperty objc_setProperty_nonatomic sel_getName
    objc_setProperty_nonatomic_copy __objc_personality_v0 _objc_empty_cache
"""


def bracketed(names: list[str]) -> str:
    quoted = (f"'{name}'" if "$" in name else name for name in sorted(names))
    return "[ " + ", ".join(quoted) + " ]"


def write_tbd(path: Path, install_name: str, symbols: list[str], classes: list[str]) -> None:
    """Writes a text stub, TAPI version 4; symbols get Darwin's leading underscore."""
    text = f"--- !tapi-tbd\ntbd-version: 4\ntargets: {TARGETS}\ninstall-name: '{install_name}'\n"
    if symbols or classes:
        text += f"exports:\n  - targets: {TARGETS}\n"
    if symbols:
        text += f"    symbols: {bracketed(['_' + symbol for symbol in symbols])}\n"
    if classes:
        text += f"    objc-classes: {bracketed(classes)}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "...\n")


def libcxx_symbols(nm: str, libraries: list[str]) -> list[str]:
    """The C++ runtime's exports: libc++'s ABI is the same on Debian and macOS."""
    symbols: set[str] = set()
    for library in libraries:
        listing = subprocess.run(
            [nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True
        ).stdout
        names = (line.split()[-1].split("@")[0] for line in listing.splitlines())
        symbols |= {n for n in names if re.match(r"_Z|__cxa|__gxx|__dynamic_cast|_Unwind", n)}
    if not symbols:
        message = "the libc++ libraries export nothing"
        raise SystemExit(message)
    return sorted(symbols) + DARWIN_CXX


def link_headers(sdk: Path, zig: Path) -> None:
    include = sdk / "usr/include"
    cxx = include / "c++/v1"
    cxx.mkdir(parents=True)
    for header in (zig / "libc/include/any-darwin-any").iterdir():
        (include / header.name).symlink_to(header)
    for folder in ("libcxx", "libcxxabi"):
        for header in (zig / folder / "include").iterdir():
            (cxx / header.name).unlink(missing_ok=True)
            (cxx / header.name).symlink_to(header)
    shutil.copy(HERE / "__config_site", cxx / "__config_site")


def write_libraries(sdk: Path, zig: Path, cxx: list[str]) -> None:
    lib = sdk / "usr/lib"
    # zig's stub lists only arm64e, and an arm64e.x1 that lld does not know; user code is arm64.
    text = (zig / "libc/darwin/libSystem.tbd").read_text()
    text = re.sub(r",\s*arm64e\.x1-\w+", "", text)
    lib.mkdir(parents=True)
    (lib / "libSystem.tbd").write_text(
        text.replace("arm64e-macos", "arm64e-macos, arm64-macos, arm64-ios")
    )
    write_tbd(lib / "libobjc.tbd", "/usr/lib/libobjc.A.dylib", OBJC_SYMBOLS.split(), ["NSObject"])
    shutil.copy(lib / "libobjc.tbd", lib / "libobjc.A.tbd")
    write_tbd(lib / "libc++.tbd", "/usr/lib/libc++.1.dylib", cxx, [])


def write_frameworks(sdk: Path) -> None:
    target = sdk / "System/Library/Frameworks"
    for name, (version, symbols, classes) in FRAMEWORKS.items():
        framework = target / f"{name}.framework"
        framework.mkdir(parents=True)
        headers = next(HERE.glob(f"*/{name}.framework/Headers"))
        (framework / "Headers").symlink_to(headers)
        versions = f"Versions/{version}/" if version else ""
        write_tbd(
            framework / f"{name}.tbd",
            f"/System/Library/Frameworks/{name}.framework/{versions}{name}",
            symbols.split(),
            classes.split(),
        )


def main() -> None:
    sdk, nm, libraries = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        message = "install the ziglang package: it brings Darwin's libc headers"
        raise SystemExit(message)
    zig = Path(spec.origin).parent / "lib"
    shutil.rmtree(sdk, ignore_errors=True)
    link_headers(sdk, zig)
    write_libraries(sdk, zig, libcxx_symbols(nm, libraries))
    write_frameworks(sdk)
    (sdk / "SDKSettings.json").write_text(json.dumps(SETTINGS))


if __name__ == "__main__":
    main()
