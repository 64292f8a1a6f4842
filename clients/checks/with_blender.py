"""Scenes that Blender's Cycles renders on its CUDA device, beside what it renders on the CPU."""

import pathlib
import tempfile
import warnings

import bpy
import numpy
from checking import check, main

warnings.simplefilter("ignore", DeprecationWarning)

SIZE = 48
SAMPLES = 4
FOLDER = pathlib.Path(tempfile.mkdtemp())


def empty_scene():
    """A scene with a camera, a plane to stand on, a lamp, and a sky."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.engine = "CYCLES"
    scene.cycles.samples = SAMPLES
    scene.cycles.seed = 7
    scene.cycles.use_denoising = False
    scene.cycles.use_adaptive_sampling = False
    scene.render.resolution_x = scene.render.resolution_y = SIZE
    scene.render.resolution_percentage = 100
    scene.render.image_settings.file_format = "OPEN_EXR"
    scene.render.image_settings.color_depth = "32"
    bpy.ops.object.camera_add(location=(5, -5, 4), rotation=(1.05, 0, 0.785))
    scene.camera = bpy.context.object
    bpy.ops.mesh.primitive_plane_add(size=10)
    bpy.ops.object.light_add(type="AREA", location=(2, -1, 5))
    bpy.context.object.data.energy = 500
    world = bpy.data.worlds.new("sky")
    world.use_nodes = True
    world.node_tree.nodes["Background"].inputs[0].default_value = (0.2, 0.3, 0.5, 1)
    scene.world = world
    return scene


def material(thing, **inputs):
    """Gives an object a material of its own; answers its nodes and its principal one."""
    made = bpy.data.materials.new("material")
    made.use_nodes = True
    thing.data.materials.append(made)
    principled = made.node_tree.nodes["Principled BSDF"]
    for name, value in inputs.items():
        principled.inputs[name.replace("_", " ")].default_value = value
    return made.node_tree, principled


def device(kind):
    """Renders on the device of this kind from here on."""
    preferences = bpy.context.preferences.addons["cycles"].preferences
    preferences.compute_device_type = "NONE" if kind == "CPU" else kind
    preferences.refresh_devices()
    for found in preferences.devices:
        found.use = found.type == kind
    bpy.context.scene.cycles.device = "CPU" if kind == "CPU" else "GPU"


def rendered(kind):
    """The image as it is rendered by a device of this kind."""
    device(kind)
    path = FOLDER / f"{kind}.exr"
    bpy.context.scene.render.filepath = str(path)
    bpy.ops.render.render(write_still=True)
    image = bpy.data.images.load(str(path), check_existing=False)
    pixels = numpy.array(image.pixels[:]).reshape(SIZE, SIZE, 4)[..., :3]
    bpy.data.images.remove(image)
    return pixels


def compare(alike=0.97, mean=2e-3):
    """Both devices render the scene alike: some paths go another way where a number differs in its last bits. So large a part of the pixels is the same,
    and the means differ by so much at most."""
    expected, found = rendered("CPU"), rendered("CUDA")
    assert numpy.isfinite(found).all(), "numbers that are none"
    assert expected.std() > 0.02, "there is something to see"
    close = numpy.isclose(found, expected, rtol=1e-3, atol=1e-4).all(axis=2).mean()
    assert close > alike, f"only {close:.1%} of the pixels agree"
    means = found.mean(axis=(0, 1)), expected.mean(axis=(0, 1))
    numpy.testing.assert_allclose(*means, rtol=mean)


@check
def there_is_a_cuda_device():
    preferences = bpy.context.preferences.addons["cycles"].preferences
    preferences.compute_device_type = "CUDA"
    preferences.refresh_devices()
    assert any(found.type == "CUDA" for found in preferences.devices)


@check
def glossy_and_glass():
    empty_scene()
    bpy.ops.mesh.primitive_uv_sphere_add(location=(0, 0, 1))
    bpy.ops.object.shade_smooth()
    material(bpy.context.object, Roughness=0.05, Transmission_Weight=1.0)
    bpy.ops.mesh.primitive_cube_add(location=(2, 1, 1))
    material(bpy.context.object, Base_Color=(0.8, 0.1, 0.1, 1), Metallic=0.9, Roughness=0.3)
    bpy.ops.mesh.primitive_torus_add(location=(-1.5, 1, 0.5))
    material(bpy.context.object, Emission_Color=(0.2, 1, 0.3, 1), Emission_Strength=2.0)
    compare()


@check
def textures_of_images_and_noise():
    empty_scene()
    image = bpy.data.images.new("checks", 16, 16)
    rows, columns = numpy.indices((16, 16))
    values = numpy.stack([rows / 16, columns / 16, (rows + columns) % 2, numpy.ones((16, 16))], axis=2)
    image.pixels = values.astype(numpy.float32).ravel()
    image.pack()
    bpy.ops.mesh.primitive_cube_add(size=3, location=(0, 0, 1.5))
    tree, principled = material(bpy.context.object)
    texture = tree.nodes.new("ShaderNodeTexImage")
    texture.image = image
    # Between pixels a GPU has 8 bits.
    texture.interpolation = "Closest"
    tree.links.new(texture.outputs["Color"], principled.inputs["Base Color"])
    noise = tree.nodes.new("ShaderNodeTexNoise")
    tree.links.new(noise.outputs["Fac"], principled.inputs["Roughness"])
    compare()


@check
def smoke():
    scene = empty_scene()
    scene.cycles.volume_bounces = 1
    bpy.ops.mesh.primitive_cube_add(size=3, location=(0, 0, 1.7))
    made = bpy.data.materials.new("smoke")
    made.use_nodes = True
    made.node_tree.nodes.clear()
    volume = made.node_tree.nodes.new("ShaderNodeVolumePrincipled")
    volume.inputs["Density"].default_value = 0.5
    output = made.node_tree.nodes.new("ShaderNodeOutputMaterial")
    made.node_tree.links.new(volume.outputs["Volume"], output.inputs["Volume"])
    bpy.context.object.data.materials.append(made)
    # Each bit decides where light is scattered.
    compare(alike=0.7, mean=0.02)


@check
def instances_that_move():
    scene = empty_scene()
    scene.render.use_motion_blur = True
    bpy.ops.mesh.primitive_monkey_add(location=(0, 0, 1.2), size=2)
    monkey = bpy.context.object
    material(monkey, Base_Color=(0.7, 0.5, 0.2, 1), Subsurface_Weight=0.5)
    monkey.keyframe_insert("location", frame=1)
    monkey.location.x = 0.6
    monkey.keyframe_insert("location", frame=2)
    for place in range(3):
        twin = bpy.data.objects.new(f"twin{place}", monkey.data)
        twin.location = (place - 2.5, 2.5, 1)
        scene.collection.objects.link(twin)
    compare()


main()
