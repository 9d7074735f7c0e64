#!/usr/bin/env python3
"""Makes image_reference.txt: image files and Pillow's pixels of them, used by image_test.cpp.

  ./make_image_reference.py > image_reference.txt       needs Pillow

A line `file NAME HEX` has the bytes of a file, a line `pixels NAME WIDTH HEIGHT HEX` the bytes of
Image.open(file).convert("RGB"), and a line `square NAME SIDE HEX` those of torchvision's
Resize(SIDE) and CenterCrop(SIDE), which are written here with Pillow's resize and crop.
"""
import io
import random
import struct
import zlib

from PIL import Image

WIDTH, HEIGHT = 17, 13


def picture(width, height, mode="RGB"):
    """A smooth picture with some noise, so that both lossy and exact decoders have work."""
    draw = random.Random(5)
    bands = len(mode) if mode != "L" else 1
    pixels = bytes((9 * x + 11 * y * (band + 1) + draw.randrange(30)) % 256
                   for y in range(height) for x in range(width) for band in range(bands))
    return Image.frombytes(mode, (width, height), pixels)


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width, height, bits, colour, rows, interlaced=0):
    """A PNG file of rows without filters. For what Pillow does not write."""
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))


def interlaced_png():
    """By Adam7: seven passes, each with every dx-th pixel of every dy-th row."""
    image = picture(WIDTH, HEIGHT)
    rows = []
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        for y in range(y0, HEIGHT, dy):
            rows.append(bytes(value for x in range(x0, WIDTH, dx) for value in image.getpixel((x, y))))
    return png(WIDTH, HEIGHT, 8, 2, rows, interlaced=1)


def deep_png():
    """16 bits per channel."""
    draw = random.Random(6)
    return png(WIDTH, HEIGHT, 16, 2, [draw.randbytes(6 * WIDTH) for _ in range(HEIGHT)])


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def resized_and_cropped(image, side):
    """As torchvision.transforms.functional computes it for images of Pillow."""
    width, height = image.size
    short = min(width, height)
    width, height = (side * width // short, side * height // short)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    top, left = int(round((height - side) / 2.0)), int(round((width - side) / 2.0))
    return image.crop((left, top, left + side, top + side))


def files():
    colour, with_alpha = picture(WIDTH, HEIGHT), picture(WIDTH, HEIGHT, "RGBA")
    yield "colour.jpg", saved(colour, "JPEG", quality=80)
    yield "fine.jpg", saved(colour, "JPEG", quality=80, subsampling=0)
    yield "progressive.jpg", saved(colour, "JPEG", progressive=True)
    yield "grey.jpg", saved(picture(WIDTH, HEIGHT, "L"), "JPEG")
    yield "cmyk.jpg", saved(picture(WIDTH, HEIGHT, "CMYK"), "JPEG")
    yield "colour.png", saved(colour, "PNG")
    yield "grey.png", saved(picture(WIDTH, HEIGHT, "L"), "PNG")
    yield "bits.png", saved(picture(WIDTH, HEIGHT, "L").convert("1"), "PNG")
    yield "alpha.png", saved(with_alpha, "PNG")
    yield "grey_alpha.png", saved(with_alpha.convert("LA"), "PNG")
    yield "palette.png", saved(colour.quantize(7), "PNG")
    yield "clear_palette.png", saved(colour.quantize(7), "PNG", transparency=2)
    yield "deep.png", deep_png()
    yield "interlaced.png", interlaced_png()


def main():
    for name, data in files():
        image = Image.open(io.BytesIO(data)).convert("RGB")
        print("file", name, data.hex())
        print("pixels", name, *image.size, image.tobytes().hex())
    for name, width, height, sides in (("wide", 37, 22, (8, 22, 31)), ("tall", 20, 33, (13, 20)), ("line", 1, 9, (3,))):
        image = picture(width, height)
        print("pixels", name, *image.size, image.tobytes().hex())
        for side in sides:
            print("square", name, side, resized_and_cropped(image, side).tobytes().hex())


if __name__ == "__main__":
    main()
